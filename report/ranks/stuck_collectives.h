// Collectives that ranks entered and did not leave, and who has not entered them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/ranks/collectives.h"

namespace xpu {

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
