// The events whose occurrences CPU samples are taken at, as the command line names them.
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
  bool is_clock = true;            // counts ns, else events
  bool exclude_user = false;
  bool exclude_kernel = false;
  uint64_t period = 0;  // a sample every so many; 0: at the recording's frequency
};

// "cycles,page-faults:u,r01c2:k,instructions/period=1000/". Errors are of ErrorKind::kUsage.
Result<std::vector<CpuEvent>> ParseCpuEvents(std::string_view list);

// "cpu-clock,task-clock,...": the events that have names.
std::string KnownCpuEvents();

// Their samples could not be distinguished.
Status CheckNoneTwice(std::span<const CpuEvent> events);

// Where an event counts.
struct CpuEventPlace {
  pid_t target = -1;  // it, everything it becomes and its descendants; -1: whatever runs on `cpu`
  int cpu = -1;       // -1: any
  bool starts_at_exec = true;  // else it is off until it is switched on
  uint32_t number = 0;         // by which cpu_sample.bpf.c knows it
};
// Off at first. `frequency_hz` counts where the event has no period. A clock does not tick where
// nothing runs.
Result<UniqueFd> OpenCpuEvent(const CpuEvent& event, const CpuEventPlace& place,
                              uint64_t frequency_hz);

// Which of the events that have names are here and which are not.
struct CpuEventNames {
  std::string here;
  std::string missing;  // empty: none
  Error first_error;    // of those
};
CpuEventNames FindCpuEvents();

}  // namespace xpu
