#include "record/base/clock.h"

#include <ctime>

#include "format/base/time_namespace.h"

namespace xpu {
namespace {

uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC) - MonotonicOffsetNs(); }
uint64_t RealtimeNs() { return ClockNs(CLOCK_REALTIME); }
uint64_t UnixNsOf(uint64_t monotonic_ns) { return RealtimeNs() - (MonotonicNs() - monotonic_ns); }

}  // namespace xpu
