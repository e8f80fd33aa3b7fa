// Ranks that make the other ranks wait: which one came last to collectives and what it did before,
// and collectives that ranks entered and did not leave.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/ranks/collectives.h"

namespace xpu {

// Why the last rank was late: what it did most of the time since the collective before.
enum class LateCause : uint8_t {
  kUnknown,
  kGpuWork,     // its GPU worked on something else
  kCpu,         // its thread ran, and launched late
  kNotRunning,  // its thread did not run
};

struct Straggler {
  uint32_t rank = 0;  // in Job::ranks()
  uint32_t gpu = 0;   // as in CollectivePart
  LateCause cause = LateCause::kUnknown;
  PathId path;             // of that, in the tree of the paths; none: not known
  uint64_t count = 0;      // how often it was the last one
  uint64_t waited_ns = 0;  // by all others together
  uint64_t delay_ns = 0;   // what it was later than the one before it
  uint64_t longest_ns = 0;
  std::map<StackId, uint64_t> python_stacks = {};  // of samples of that code, with their time
};

// One entry for each rank and path, the most waited for first. Paths are readable ones
// (readable_paths.h), up to the innermost function that has most of the time. Collectives in which
// nobody waited are left out.
std::vector<Straggler> FindStragglers(Analysis& analysis, const Collectives& collectives,
                                      CallPaths& paths);

// ---- collectives that did not end

struct StuckCollective {
  size_t collective = 0;               // in Collectives::all
  std::vector<uint32_t> waiting = {};  // in Job::ranks(): called it, and its kernel has no end
  std::vector<uint32_t> absent = {};   // likewise: of the communicator, have not called it
  uint64_t called_ns = 0;              // by the first of `waiting`
};

// Finds for each communicator whose calls are known from NVTX the first collective after its last
// one that some rank has left. The longest wait first.
std::vector<StuckCollective> FindStuckCollectives(const Collectives& collectives);

// "Rank 3 waited in AllReduce #288 of communicator 0xc0ffee for 12 s, in train.py:step; rank 1 has
// not called it: rank 1 was in train.py:load_batch." About the longest wait; empty: no rank waited
// for long in the end.
std::string StuckCollectivesText(Analysis& analysis);

}  // namespace xpu
