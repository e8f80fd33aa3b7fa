// Who makes the other ranks wait, and what it did meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "report/analysis/call_paths.h"
#include "report/ranks/collectives.h"

namespace xpu {

// What the last rank did since the collective before, most of that time.
enum class LateCause : uint8_t {
  kUnknown,
  kGpuWork,     // its GPU worked on something else
  kCpu,         // its thread ran, and launched late
  kNotRunning,  // its thread did not run
};

struct Straggler {
  uint32_t rank = 0;  // in Job::ranks()
  LateCause cause = LateCause::kUnknown;
  PathId path;             // of that, in the tree of the paths; none: not known
  uint64_t count = 0;      // how often it was the last one
  uint64_t waited_ns = 0;  // by all others together
  uint64_t delay_ns = 0;   // what it was later than the one before it
  uint64_t longest_ns = 0;
};

// By rank and path, the most waited for first. Collectives that only one rank has are left out.
std::vector<Straggler> FindStragglers(Analysis& analysis, const Collectives& collectives,
                                      CallPaths& paths);

}  // namespace xpu
