// The lines of source files around those that occur in Python stacks and those of GPU kernels that
// have samples (--sources=hit), read while the process runs: a compiler's files in a temporary
// directory may be gone at its end. Those of native code come when its symbols are stored.
//
// The process chooses the names of these files, in its code objects and debug information, also
// that of its GPU code, so it must gain nothing by that: a process without rights reads them
// (symbolize/text_reader.h), as the user of the recorded process (source_places.h: or as the one
// who called sudo) and below its root, only regular files whose names are those of sources, and
// only so much. Another one reads the line tables (symbolize/gpu_code_lines.h). On a thread of its
// own: a file system may take long to answer.
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

#include "record/sink/event_sink.h"
#include "record/symbols/source_places.h"
#include "symbolize/gpu_code_lines.h"

namespace xpu {

class SourceTexts : public EventObserver {
 public:
  static constexpr size_t kMaxFiles = 4096;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of all files together
  static constexpr uint32_t kLinesAround = 20;

  // `places` outlives this object; nullptr: nothing is observed, lines are added.
  explicit SourceTexts(SourcePlaces* places);
  SourceTexts(const SourceTexts&) = delete;
  SourceTexts& operator=(const SourceTexts&) = delete;
  ~SourceTexts() override;

  void Observe(const PythonCode& code, std::string_view path, std::string_view line_table) override;
  void ObservePythonStack(uint32_t pid, StackId stack, uint64_t time_ns,
                          const NodeOf& node_of) override;
  void Observe(const GpuProcess& process) override;
  void Observe(const GpuSample& sample) override;
  void Observe(const CubinSlice& slice, std::string_view bytes) override;

  // Files with relative names, which lay somewhere when they were compiled, are left out.
  void Add(const FileLines& lines, const SourceNamer& namer);

  // Lines that have occurred since the last call, of files that have been read. kYes: waits some
  // seconds for the others, and counts those that are not read then; kNo: the next call has them.
  enum class Waits : bool { kNo, kYes };
  void Write(EventSink& sink, Waits waits);

 private:
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
    SourceNamer namer;
  };
  using Module = std::pair<InstanceId, uint64_t>;  // with its checksum
  struct Request {
    std::string path;
    std::string opened_path;
    SourceNamer namer;
    // Else what names the files, and its module.
    std::string gpu_code;
    Module module;
  };
  // Reads texts, on the thread.
  class Reader;

  void AddLine(uint32_t pid, uint64_t time_ns, const PythonFrame& frame);
  // These four: under `lock_`.
  void AddLines(const std::string& path, const std::set<uint32_t>& lines, const SourceNamer& namer);
  void AddCompiledFiles();
  void Ask(const std::string& path, File& file);
  void Push(Request request);
  void ReadFiles();
  void ReadText(const Request& request, Reader& reader);
  void ReadGpuLines(const Request& request, size_t& failures);
  static void WriteFile(const std::string& path, File& file, EventSink& sink);

  std::unordered_map<uint32_t, Code> codes_;
  std::unordered_set<uint64_t> seen_;  // frames
  std::array<std::pair<uint32_t, StackId>, 256> recent_{};
  SourcePlaces* places_;
  std::map<InstanceId, SourceNamer> gpu_processes_;
  std::string gpu_code_;      // of a slice, as far as its parts have come
  std::set<Module> sampled_;  // since the last Write
  Module last_sampled_;
  std::map<std::string, File> files_;  // texts and failures: under `lock_`
  size_t refused_ = 0;                 // there were too many files
  // Of each module; under `lock_`.
  std::map<Module, std::vector<FileLines>> gpu_lines_;
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
