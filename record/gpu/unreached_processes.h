// Processes of which less is recorded than the user thinks, as the kernel's records of tasks and
// mappings show it:
// - A program that gains privileges by its exec (setuid, setgid, file capabilities) or may not be
//   read: the kernel takes it out of the perf events at that moment. Its records then read exec,
//   exit, with no mapping between them, which no other program's do.
// - A process that maps the injected library and never reports: a seccomp filter, another network
//   namespace, cleared variables or a full table of descriptors kept it from the socket, or another
//   recorder, which was started within this one, has taken it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/gpu/injection_reach.h"
#include "record/kernel/perf_records.h"
#include "record/sink/event_sink.h"

namespace xpu {

// What libraries in processes have said, by pid. An exec keeps the pid: each count is of images.
struct InjectionReports {
  std::map<uint32_t, uint32_t> connected;  // those that were refused too
  std::map<uint32_t, uint32_t> refused;    // and told as not reached
  std::map<uint32_t, uint32_t> started_cuda;
};

class UnreachedProcesses {
 public:
  // What is to be in each process with CUDA; without it nothing is injected, and none is missed.
  struct Expected {
    std::string library;
    std::string invitation;
    // What a mapping of the driver or of the library, and what was to be there, tell.
    using Look = std::optional<std::string>(const PerfMapping& mapping, const std::string& value);
    Look* look_at_driver = &ObstacleToInjection;
    Look* look_at_library = &ObstacleToReport;
  };
  void ExpectInjection(Expected expected) { expected_ = std::move(expected); }
  void See(const PerfRecord& record);
  // All records that were there have been seen. Those of one process come from several rings, so a
  // process is judged one round after its end.
  void EndRound(EventSink& sink);
  void Finish(EventSink& sink, const InjectionReports& reports);
  // For -v: what was found in processes, once.
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  struct Process {
    std::string name;
    uint64_t exec_ns = 0;
    uint64_t mapping_ns = 0;  // the last one
    uint64_t exit_ns = 0;
  };
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
  void Judge(uint32_t pid, EventSink& sink);
  void SeeLibrary(const PerfMapping& mapping, const Process& process);
  void SeeDriver(const PerfMapping& mapping, const Process& process);
  void CountSilentLibraries(EventSink& sink, const InjectionReports& reports);
  void CountUnreachable(EventSink& sink, const InjectionReports& reports);

  std::unordered_map<uint32_t, Process> processes_;
  std::vector<uint32_t> ended_, ended_before_;
  std::map<uint32_t, Loader> loaders_;
  std::optional<Expected> expected_;
  std::map<uint32_t, Drivers> drivers_;
  std::string news_;
};

}  // namespace xpu
