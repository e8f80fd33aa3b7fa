// A job rank by rank: how long its steps take, and how much of them it waits for the other ranks or
// they for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/query/gpu_busy.h"
#include "report/ranks/collectives.h"
#include "report/ranks/communication.h"
#include "report/ranks/late_ranks.h"
#include "report/workload/steps.h"

namespace xpu {

struct RankSum {
  uint32_t rank = 0;            // in Job::ranks()
  uint64_t step_ns = 0;         // the median; 0: no steps were found
  Communication communication;  // of its steps, or of the whole recording
  uint64_t busy_ns = 0;         // of its GPUs
  uint64_t active_ns = 0;       // likewise, from their first work to their last
  uint64_t waited_ns = 0;       // for other ranks
  uint64_t awaited_ns = 0;      // by other ranks, added up
};
// Ranks with collectives, the most waited for first.
std::vector<RankSum> FindRankSums(Analysis& analysis, const std::vector<GpuBusy>& busy,
                                  const StepDefinition& steps);

// How long the ranks took part in collectives, added up.
uint64_t TimeOfRanksNs(const Collectives& collectives);
// Whether the ranks waited longer than they were there: collectives that do not belong together
// were taken for one, which is a fault of this program.
bool AreImpossible(const Collectives& collectives);
inline constexpr std::string_view kImpossible =
    "ranks waited longer than they were there: collectives were matched wrongly, which is a fault "
    "of "
    "xpu-report; please report it";

// "Rank 2 came late to collectives: the other ranks waited 1.19 s for it (8 % of their time), while
// it was in train.py:decode_images:12; ..." About the two ranks for which others waited the most.
// Empty: no rank stands out, or it is not known why.
std::string LateRanksText(Analysis& analysis);

}  // namespace xpu
