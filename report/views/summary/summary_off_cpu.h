// What the summary says of threads that did not run.
#pragma once

#include "report/analysis/analysis.h"
#include "report/views/summary/summary_text.h"

namespace xpu {

// Threads that wait for each other's locks.
void WriteDeadlocks(const Analysis& analysis, SummaryText& text);

// How threads spent their time, what they waited for, and what the main thread waited for while a
// GPU was idle. Nothing if the capture has no off-CPU time.
void WriteOffCpu(Analysis& analysis, SummaryText& text);

}  // namespace xpu
