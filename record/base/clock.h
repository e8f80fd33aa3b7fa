// The clocks of a recording.
#pragma once

#include <cstdint>

namespace xpu {

// CLOCK_MONOTONIC.
uint64_t MonotonicNs();
uint64_t RealtimeNs();

}  // namespace xpu
