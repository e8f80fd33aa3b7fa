// A part of a recording, and how a user writes it.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

// From the start of the recording.
struct TimeRange {
  static constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();

  uint64_t begin_ns = 0;
  uint64_t end_ns = kNoEnd;  // exclusive

  bool is_all() const { return begin_ns == 0 && end_ns == kNoEnd; }
};

// "1.5s-2s", "500ms-", "-2s", "300us-1ms": units s, ms, us, ns; without one: s.
Result<TimeRange> ParseTimeRange(std::string_view text);

}  // namespace xpu
