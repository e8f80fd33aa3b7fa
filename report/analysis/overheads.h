// Time that the driver and CUPTI took for themselves, on the clock of everything else: overheads,
// and compiling code for the device just in time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"

namespace xpu {

// Has a time that can be believed.
template <typename Event>
bool IsTimed(const Event& event) {
  return event.start_ns != 0 && event.end_ns >= event.start_ns;
}

// "compile", "cache load" of a CUpti_ActivityJitOperationType.
std::string_view JitOperationName(uint32_t operation);
// "PTX to machine code" of a CUpti_ActivityJitEntryType.
std::string_view JitEntryName(uint32_t entry_kind);
bool IsCompilation(const JitOperation& jit);
// The driver loaded code when it was first used.
bool IsLazyLoading(const Overhead& overhead);

// One of the two is there.
struct DriverTime {
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  const Overhead* overhead = nullptr;
  const JitOperation* jit = nullptr;
  // The process's first thread stands for it: which one it was is not known of overheads.
  Owner owner = {};

  InstanceId instance() const { return jit != nullptr ? jit->instance : overhead->instance; }
  uint32_t correlation_id() const {
    return jit != nullptr ? jit->correlation_id : overhead->correlation_id;
  }
};

// Returns those that have a time, in order of it. They refer to the analysis.
std::vector<DriverTime> DriverTimes(const Analysis& analysis);

// "lazy function loading", "JIT compile, PTX to machine code"
std::string TitleOf(const DriverTime& time);

}  // namespace xpu
