// Which synchronisations hold up a thread of the CPU.
#pragma once

#include <cstdint>
#include <limits>

#include "report/correlate/correlate.h"

namespace xpu {

// CUPTI_SYNCHRONIZATION_INVALID_VALUE: the stream or event of a synchronisation of something else.
inline constexpr uint32_t kNoSynchronizedObject = std::numeric_limits<uint32_t>::max();

// cuStreamWaitEvent makes a stream wait, and returns at once.
inline bool IsStreamWait(const LoadedEvents& events, const GpuWork& work) {
  constexpr uint32_t kStreamWaitEvent = 2;  // CUpti_ActivitySynchronizationType
  return work.kind == WorkKind::kSynchronization &&
         events.synchronizations.Get<&Synchronization::type>(work.index) == kStreamWaitEvent;
}

inline bool IsCpuWait(const LoadedEvents& events, const GpuWork& work) {
  return work.kind == WorkKind::kSynchronization && !IsStreamWait(events, work);
}

}  // namespace xpu
