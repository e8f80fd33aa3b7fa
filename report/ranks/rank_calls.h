// The calls of collectives that each rank made, with their kernels, not yet matched.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/ranks/collective.h"
#include "report/trace/trace.h"

namespace xpu {

struct RankCall {
  CollectivePart part;
  CollectiveMatch match = CollectiveMatch::kByNvtx;
  uint64_t communicator = 0;  // as in Collective
  std::string operation;
  std::string reduction;
  uint64_t bytes = 0;
};

struct RankCalls {
  std::vector<RankCall> calls;                   // of each rank in the order of its calls
  std::unordered_map<uint64_t, uint32_t> sizes;  // how many ranks a communicator has, if it says so
  uint64_t unmatched_kernels = 0;
  uint64_t point_to_point = 0;
};

RankCalls FindRankCalls(const Trace& trace);

}  // namespace xpu
