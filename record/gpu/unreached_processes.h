// CUDA processes that do not report, as their mappings show it: the driver will not find the
// injected library in some; others map it and it stays silent, because a seccomp filter, another
// network namespace, cleared variables or a full table of descriptors keeps it from the socket, or
// another recorder, which was started within this one, has taken it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/gpu/injection_reach.h"
#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

// What libraries in processes have said, by pid. An exec keeps the pid: each count is of images.
struct InjectionReports {
  std::map<uint32_t, uint32_t> connected;  // those that were refused too
  std::map<uint32_t, uint32_t> refused;    // and counted as not reached
  std::map<uint32_t, uint32_t> started_cuda;
};

class UnreachedProcesses : public ProcessListener {
 public:
  // What is to be in each process with CUDA.
  struct Expected {
    std::string library;
    std::string connection_string;
    // What a mapping of the driver or of the library, and what was to be there, tell.
    using Look = std::optional<std::string>(const MappedLibrary& mapping, const std::string& value);
    Look* look_at_driver = &ObstacleToInjection;
    Look* look_at_library = &ObstacleToReport;
  };
  // Listens to `processes`, which outlives this.
  UnreachedProcesses(ProcessTable& processes, Expected expected)
      : processes_(processes), expected_(std::move(expected)) {
    processes.AddListener(this);
  }

  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void Finish(EventSink& sink, const InjectionReports& reports);
  // For -v: what was found in processes, once.
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  struct Loader {
    std::string name;
    std::string obstacle;  // of the last that had one
    uint32_t loads = 0;
  };
  // The images of one process that have mapped the driver.
  struct Drivers {
    std::string name;
    std::string obstacle;  // of the last that had one
    uint64_t exec_ns = 0;  // of the image that was seen last
    uint32_t images = 0;
    uint32_t unreachable = 0;
    uint32_t unknown = 0;
  };
  void SeeLibrary(const MappedLibrary& mapping, std::string_view name);
  void SeeDriver(const MappedLibrary& mapping, std::string_view name, uint64_t exec_ns);
  void CountSilentLibraries(EventSink& sink, const InjectionReports& reports);
  void CountUnreachable(EventSink& sink, const InjectionReports& reports);

  const ProcessTable& processes_;
  std::map<uint32_t, Loader> loaders_;
  const Expected expected_;
  std::map<uint32_t, Drivers> drivers_;
  std::string news_;
};

}  // namespace xpu
