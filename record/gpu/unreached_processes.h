// Finds CUDA processes that do not report, by their mappings. In some the driver will not find the
// injected library. In others the library is mapped and stays silent: a seccomp filter, another
// network namespace, cleared variables or a full descriptor table keeps it from the socket, or
// another recorder that was started inside this one has taken it.
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

// What the libraries in processes reported, by pid. An exec keeps the pid, so each count is of
// program images.
struct InjectionReports {
  std::map<uint32_t, uint32_t> connected;  // including refused ones
  std::map<uint32_t, uint32_t> refused;    // and already counted as not reached
  std::map<uint32_t, uint32_t> started_cuda;
};

class UnreachedProcesses : public ProcessListener {
 public:
  // What every process with CUDA must contain.
  struct Expected {
    std::string library;
    std::string connection_string;
    // Examines a mapping of the driver or of the library, given the expected value.
    using Examine = std::optional<std::string>(const MappedLibrary& mapping,
                                               const std::string& value);
    Examine* examine_driver = &ObstacleToInjection;
    Examine* examine_library = &ObstacleToReport;
  };
  // Listens to `processes`, which outlives this object.
  UnreachedProcesses(ProcessTable& processes, Expected expected)
      : processes_(processes), expected_(std::move(expected)) {
    processes.AddListener(this);
  }

  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void Finish(EventSink& sink, const InjectionReports& reports);
  // Returns, once, what was found in processes, for -v.
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  struct Loader {
    std::string name;
    std::string obstacle;  // of the last load that had one
    uint32_t loads = 0;
  };
  // The program images of one process that have mapped the driver.
  struct Drivers {
    std::string name;
    std::string obstacle;  // of the last image that had one
    uint64_t exec_ns = 0;  // of the last image examined
    uint32_t images = 0;
    uint32_t unreachable = 0;
    uint32_t unknown = 0;
  };
  void ObserveLibrary(const MappedLibrary& mapping, std::string_view name);
  void ObserveDriver(const MappedLibrary& mapping, std::string_view name, uint64_t exec_ns);
  void CountSilentLibraries(EventSink& sink, const InjectionReports& reports);
  void CountUnreachable(EventSink& sink, const InjectionReports& reports);

  const ProcessTable& processes_;
  std::map<uint32_t, Loader> loaders_;
  const Expected expected_;
  std::map<uint32_t, Drivers> drivers_;
  std::string news_;
};

}  // namespace xpu
