// The events that trigger CPU samples, as named on the command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

struct CpuEvent {
  std::string name = "cpu-clock";  // with its modifiers: "page-faults:u"
  uint32_t type = 1;               // PERF_TYPE_; software
  uint64_t config = 0;             // PERF_COUNT_; the CPU clock
  bool is_clock = true;            // counts ns; otherwise events
  bool exclude_user = false;
  bool exclude_kernel = false;
  uint64_t period = 0;  // one sample per `period` events; 0: at the recording's frequency
};

// "cycles,page-faults:u,r01c2:k,instructions/period=1000/". Errors are of ErrorKind::kUsage.
Result<std::vector<CpuEvent>> ParseCpuEvents(std::string_view list);

// "cpu-clock,task-clock,...": the events that have names.
std::string KnownCpuEvents();

// Samples of two equal events could not be distinguished.
Status CheckNoneTwice(std::span<const CpuEvent> events);

// Where an event is counted.
struct CpuEventScope {
  pid_t target = -1;           // a process and its descendants; -1: every process on `cpu`
  int cpu = -1;                // -1: any
  bool starts_at_exec = true;  // otherwise it stays off until it is enabled
  uint32_t number = 0;         // identifies the event in cpu_sample.bpf.c
};
// Opens the event disabled. `frequency_hz` applies if the event has no period. A clock does not
// tick while nothing runs.
Result<UniqueFd> OpenCpuEvent(const CpuEvent& event, const CpuEventScope& scope,
                              uint64_t frequency_hz);

// The named events that this machine has, and those that it lacks.
struct CpuEventNames {
  std::string here;
  std::string missing;  // empty: none
  Error first_error;    // the error of the first missing event
};
CpuEventNames FindCpuEvents();

}  // namespace xpu
