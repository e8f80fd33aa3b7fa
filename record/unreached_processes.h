// Processes of which less is recorded than the user thinks, as the kernel's records of tasks and
// mappings show it:
// - A program that gains privileges by its exec (setuid, setgid, file capabilities) or may not be
//   read: the kernel takes it out of the perf events at that moment. Its records then read exec,
//   exit, with no mapping between them, which no other program's do.
// - A process that maps the injected library and never reports: a seccomp filter, another network
//   namespace, cleared variables or a full table of descriptors kept it from the socket.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/event_sink.h"
#include "record/perf_records.h"

namespace xpu {

class UnreachedProcesses {
 public:
  void See(const PerfRecord& record);
  // All records that were there have been seen. Those of one process come from several rings, so a
  // process is judged one round after its end.
  void EndRound(EventSink& sink);
  // The recording is over. `reports`: how often each pid has reported.
  void Finish(EventSink& sink, const std::map<uint32_t, uint32_t>& reports);

 private:
  struct Process {
    std::string name;
    uint64_t exec_ns = 0;
    uint64_t mapping_ns = 0;  // the last one
    uint64_t exit_ns = 0;
  };
  struct Loader {
    std::string name;
    uint32_t loads = 0;
  };
  void Judge(uint32_t pid, EventSink& sink);

  std::unordered_map<uint32_t, Process> processes_;
  std::vector<uint32_t> ended_, ended_before_;
  std::map<uint32_t, Loader> loaders_;
};

}  // namespace xpu
