#include "report/summary/ledger_text.h"

#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/text.h"

namespace xpu {

std::string LedgerText(const std::vector<LedgerEntry>& ledger) {
  std::string text;
  std::string stacks;
  for (const LedgerEntry& entry : ledger) {
    if (entry.severity == Severity::kNote) continue;
    if (IsAboutStacks(entry)) {
      AppendFormat(stacks, "{}{} {}", stacks.empty() ? "" : ", ", WithThousands(entry.count),
                   entry.name);
      continue;
    }
    AppendFormat(text, "{} {} ({})\n", WithThousands(entry.count), entry.what, entry.name);
    for (const std::string& detail : entry.details) {
      AppendFormat(text, "  {}\n", ForOneLine(detail));
    }
    if (!entry.advice.empty()) AppendFormat(text, "  hint: {}\n", entry.advice);
  }
  if (!stacks.empty()) AppendFormat(text, "stacks: {}; the summary explains\n", stacks);
  return text;
}

}  // namespace xpu
