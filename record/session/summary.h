// What is said at the end of a recording.
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

// One line with the totals, then a line for each kind of loss that occurred, with its advice. What
// is about stacks alone has its own line for all kinds, beside the losses: no event is missing,
// and every recording has some incomplete stacks.
std::string SummaryText(const RecordingTotals& totals, const LossLedger& losses);

}  // namespace xpu
