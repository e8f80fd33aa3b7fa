#include "report/query/ledger_text.h"

#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/output/text.h"

namespace xpu {
namespace {

// They name the same files under each view. What is about lines depends on the view.
bool IsAboutNames(const LedgerEntry& entry) {
  return IsAboutSymbols(entry) && entry.name.find("lines") == std::string::npos;
}

// "stacks: 2 stack_truncated, ...": adds to it.
void AddShort(const LedgerEntry& entry, std::string& line) {
  AppendFormat(line, "{}{} {}", line.empty() ? "" : ", ", WithThousands(entry.count), entry.name);
}

}  // namespace

std::string LedgerText(const std::vector<LedgerEntry>& ledger) {
  std::string text;
  std::string stacks;
  std::string names;
  for (const LedgerEntry& entry : ledger) {
    if (entry.severity == Severity::kNote) continue;
    if (IsAboutStacks(entry) || IsAboutNames(entry)) {
      AddShort(entry, IsAboutStacks(entry) ? stacks : names);
      continue;
    }
    AppendFormat(text, "{} {} ({})\n", WithThousands(entry.count), entry.what, entry.name);
    for (const std::string& detail : entry.details) {
      AppendFormat(text, "  {}\n", ForOneLine(detail));
    }
    if (!entry.advice.empty()) AppendFormat(text, "  hint: {}\n", entry.advice);
  }
  if (!names.empty()) AppendFormat(text, "names: {}; the summary explains\n", names);
  if (!stacks.empty()) AppendFormat(text, "stacks: {}; the summary explains\n", stacks);
  return text;
}

}  // namespace xpu
