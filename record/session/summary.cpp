#include "record/session/summary.h"

#include "format/base/counted.h"
#include "format/base/text.h"
#include "record/base/size_text.h"

namespace xpu {

std::string SummaryText(const RecordingTotals& totals, const LossLedger& losses) {
  const uint64_t about_stacks = losses.total_about_stacks();
  std::string text = Format("xpu-record: {}, {}, ", Counted(totals.events, "event", "events"),
                            Counted(losses.total() - about_stacks, "loss", "losses"));
  if (about_stacks > 0) {
    AppendFormat(text, "{} on stacks, ", Counted(about_stacks, "note", "notes"));
  }
  AppendFormat(text, "{}, {}\n", totals.file, SizeText(totals.bytes));
  std::string stacks;
  for (const LossInfo& info : LossTable()) {
    const uint64_t count = losses.total(info.kind);
    if (count == 0) continue;
    if (IsAboutStacks(info.kind)) {
      AppendFormat(stacks, "{}{} {}", stacks.empty() ? "" : ", ", count, info.name);
      continue;
    }
    AppendFormat(text, "xpu-record: {}: {} {}.", info.name, count, ForCount(count, info.what));
    for (const std::string& detail : losses.details(info.kind)) {
      AppendFormat(text, " {}.", detail);
    }
    if (losses.has_more_details(info.kind)) text += " More are in the capture.";
    if (!info.advice.empty()) AppendFormat(text, " {}", info.advice);
    text += '\n';
  }
  if (!stacks.empty())
    AppendFormat(text, "xpu-record: notes on stacks: {}; xpu-report explains them\n", stacks);
  return text;
}

}  // namespace xpu
