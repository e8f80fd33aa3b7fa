// The lines of source files around those that occur in Python stacks and those of GPU kernels that
// have samples (--sources=hit), read while the process runs: a compiler's files in a temporary
// directory may be gone at its end.
//
// The process chooses the names of these files, in its code objects and in the line tables of its
// GPU code, so it must gain nothing by that: a process without rights reads them
// (symbolize/text_reader.h), as the user of the recorded process and below its root, only regular
// files whose names are those of sources, and only so much. Another one reads the line tables
// (symbolize/gpu_code_lines.h). On a thread of its own: a file system may take long to answer.
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
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "record/sink/event_sink.h"
#include "symbolize/gpu_code_lines.h"

namespace xpu {

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
  void Observe(const GpuProcess& process) override;
  void Observe(const GpuSample& sample) override;
  void Observe(const CubinSlice& slice, std::string_view bytes) override;

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
  using Module = std::pair<InstanceId, uint64_t>;  // with its checksum
  struct Request {
    std::string path;
    std::string opened_path;
    std::shared_ptr<const Place> place;
    // Else what names the files, and its module.
    std::string gpu_code;
    Module module;
  };
  // Reads texts, on the thread.
  class Reader;

  std::shared_ptr<const Place> PlaceOf(uint32_t pid);
  void AddLine(uint32_t pid, const PythonFrame& frame);
  // These three: under `lock_`.
  void AddLines(const std::string& path, const std::set<uint32_t>& lines,
                const std::shared_ptr<const Place>& place);
  void Ask(const std::string& path, const std::shared_ptr<const Place>& place);
  void Push(Request request);
  void ReadFiles();
  void ReadText(const Request& request, Reader& reader);
  void ReadGpuLines(const Request& request, size_t& failures);
  static void WriteFile(const std::string& path, File& file, EventSink& sink);

  std::unordered_map<uint32_t, Code> codes_;
  std::unordered_set<uint64_t> seen_;  // frames
  std::array<std::pair<uint32_t, StackId>, 256> recent_{};
  std::unordered_map<uint32_t, std::shared_ptr<const Place>> places_;  // by pid
  std::map<InstanceId, std::shared_ptr<const Place>> gpu_places_;
  std::string gpu_code_;      // of a slice, as far as its parts have come
  std::set<Module> sampled_;  // since the last Write
  Module last_sampled_;
  std::map<std::string, File> files_;  // texts and failures: under `lock_`
  size_t refused_ = 0;                 // there were too many files
  // Of each module; under `lock_`.
  std::map<Module, std::vector<GpuCodeLines>> gpu_lines_;
  size_t gpu_lines_count_ = 0;
  uint64_t gpu_code_bytes_ = 0;          // in `requests_`
  std::vector<std::string> unreadable_;  // GPU code, with the reasons

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  size_t unanswered_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace xpu
