// The ledger as the views other than the summary tell it.
#pragma once

#include <string>
#include <vector>

#include "report/query/ledger.h"

namespace xpu {

// "12 CPU samples dropped: ... (sample_ring_full)" and its advice, for stderr; what is about
// stacks, as in every recording, in one line, and what is about the names of files, as under every
// view, in another; notes left out.
std::string LedgerText(const std::vector<LedgerEntry>& ledger);

}  // namespace xpu
