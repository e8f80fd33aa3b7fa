// What the summary says of a job of many ranks, and of containers.
#pragma once

#include "report/analysis/analysis.h"
#include "report/views/summary/summary_text.h"

namespace xpu {

// The ranks and their hosts, how the clocks of hosts were aligned, the collectives, and which rank
// the others waited for. Nothing of a single process without a rank.
void WriteJob(const Analysis& analysis, SummaryText& text);
// The containers that the processes are in; nothing if they are in none.
void WriteContainers(const Analysis& analysis, SummaryText& text);

}  // namespace xpu
