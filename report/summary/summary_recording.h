// The last part of the summary: how good the recording is, and what is missing from it.
#pragma once

#include "report/analysis.h"
#include "report/stacks/nameless_files.h"
#include "report/summary/summary_text.h"

namespace xpu {

// Samples, stacks, symbols, launches and the kernels matched to them, clocks.
void WriteQuality(const Analysis& analysis, SummaryText& text);
// The ledger: losses, then notes. Nothing when it is empty.
void WriteLedger(const Analysis& analysis, SummaryText& text);
// Files without names, and why.
void WriteNameless(const Analysis& analysis, const NamelessFiles& nameless, SummaryText& text);

}  // namespace xpu
