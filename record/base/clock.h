// The clocks of a recording.
#pragma once

#include <cstdint>

namespace xpu {

// CLOCK_MONOTONIC.
uint64_t MonotonicNs();
uint64_t RealtimeNs();
// CLOCK_REALTIME at a time of CLOCK_MONOTONIC, if nobody has set it since.
uint64_t UnixNsOf(uint64_t monotonic_ns);

}  // namespace xpu
