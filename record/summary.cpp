#include "record/summary.h"

#include "format/base/counted.h"
#include "format/base/text.h"

namespace xpu {

std::string SizeText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return Format("{} B", bytes);
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (size >= 1023.95 && unit + 1 < std::size(kUnits)) {
    size /= 1024;
    ++unit;
  }
  return Format("{:.1f} {}", size, kUnits[unit]);
}

std::string SummaryText(const RecordingTotals& totals, const LossLedger& losses) {
  std::string text =
      Format("xpu-record: {}, {}, {}, {}\n", Counted(totals.events, "event", "events"),
             Counted(losses.total(), "loss", "losses"), totals.file, SizeText(totals.bytes));
  for (const LossInfo& info : LossTable()) {
    const uint64_t count = losses.total(info.kind);
    if (count == 0) continue;
    AppendFormat(text, "xpu-record: {}: {} {}.", info.name, count, ForCount(count, info.what));
    for (const std::string& detail : losses.details(info.kind)) {
      AppendFormat(text, " {}.", detail);
    }
    if (losses.has_more_details(info.kind)) text += " More are in the capture.";
    if (!info.advice.empty()) AppendFormat(text, " {}", info.advice);
    text += '\n';
  }
  return text;
}

}  // namespace xpu
