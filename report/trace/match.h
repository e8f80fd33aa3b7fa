// How things are found to belong together, and how `--correlate` wants them to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

enum class MatchKind : uint8_t {
  kNone = 0,
  kById = 1,         // the id occurs once
  kByIdAndTime = 2,  // the id occurs more than once: the nearest in time
  kByNesting = 3,    // one lies within the other, on one thread
  kByTime = 4,       // of one process, by the order and the distance of times
};
inline constexpr size_t kMatchKinds = 5;
// "by id", "by time".
std::string_view MatchText(MatchKind match);

enum class CorrelateBy : uint8_t {
  // Ids; the stacks that probes took, which have none, by nesting.
  kAuto,
  // Nothing but ids.
  kId,
  // Stacks by nesting: of the call of the same thread that they lie in. GPU work has no thread,
  // so that it is matched by id.
  kNesting,
  // GPU work by time: of the nearest call of the same process before it that starts such work and
  // that no later work has taken.
  kTime,
};

struct CorrelateOptions {
  CorrelateBy by = CorrelateBy::kAuto;
  uint64_t window_ns = 10'000'000;  // of kTime: how long before the work its call may have begun
};

// "auto", "id", "nesting", "time", "time:500us". kUsage: none of them.
Result<CorrelateOptions> ParseCorrelate(std::string_view text);

}  // namespace xpu
