// The text that is printed at the end of a recording.
#pragma once

#include <cstdint>
#include <string>

#include "record/sink/loss_ledger.h"

namespace xpu {

struct RecordingTotals {
  uint64_t events = 0;
  uint64_t bytes = 0;
  std::string file;
};

// One line with the totals, then one line with advice for each kind of loss that occurred.
// Incomplete stacks have a single line of their own, separate from the losses: no event is missing,
// and every recording has some.
std::string SummaryText(const RecordingTotals& totals, const LossLedger& losses);

}  // namespace xpu
