// The lines of source files around those that occur in Python stacks (--sources=hit), read while
// the process runs: a compiler's files in a temporary directory may be gone at its end.
//
// The process chooses the names of these files, so it must gain nothing by that: a process without
// rights reads them (symbolize/text_reader.h), as the user of the recorded process and
// below its root, only regular files whose names are those of sources, and only so much. On a
// thread of its own: a file system may take long to answer.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <sys/types.h>

#include "format/base/handle.h"
#include "record/sink/event_sink.h"

namespace xpu {

// Whether a file of that name may be a source: by its extension.
bool IsSourceName(std::string_view path);

class SourceTexts : public EventObserver {
 public:
  static constexpr size_t kMaxFiles = 4096;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of all files together
  static constexpr uint32_t kLinesAround = 20;

  SourceTexts();
  SourceTexts(const SourceTexts&) = delete;
  SourceTexts& operator=(const SourceTexts&) = delete;
  ~SourceTexts() override;

  void Observe(const PythonCode& code, std::string_view path, std::string_view line_table) override;
  void ObservePythonStack(uint32_t pid, StackId stack, const NodeOf& node_of) override;

  // Lines that have occurred since the last call, of files that have been read. kYes: waits some
  // seconds for the others, and counts those that are not read then; kNo: the next call has them.
  enum class Waits : bool { kNo, kYes };
  void Write(EventSink& sink, Waits waits);

 private:
  // A process, as it was when its first stack came.
  struct Place {
    UniqueFd root;
    uid_t user = 0;
    gid_t group = 0;
    std::string directory;  // that relative paths begin at; empty: not known
  };
  struct Code {
    std::string path;
    std::string line_table;
    uint32_t first_line = 0;
  };
  struct File {
    std::set<uint32_t> lines;  // that have occurred and are not written yet
    bool is_read = false;
    std::string text;
    std::string failure;
  };
  struct Request {
    std::string path;
    std::string opened_path;
    std::shared_ptr<const Place> place;
  };

  std::shared_ptr<const Place> PlaceOf(uint32_t pid);
  void AddLine(uint32_t pid, const PythonFrame& frame);
  void Ask(uint32_t pid, const std::string& path);
  void ReadFiles();
  static void WriteFile(const std::string& path, File& file, EventSink& sink);

  std::unordered_map<uint32_t, Code> codes_;
  std::unordered_set<uint64_t> seen_;  // frames
  std::array<std::pair<uint32_t, StackId>, 256> recent_{};
  std::unordered_map<uint32_t, std::shared_ptr<const Place>> places_;  // by pid
  std::map<std::string, File> files_;  // texts and failures: under `lock_`
  size_t refused_ = 0;                 // there were too many files

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  size_t unanswered_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace xpu
