// Data that is missing from a capture or could not be determined: the recorder's losses, problems
// of the file, and what the passes found.
//
// One ledger for all views, so that none hides a loss: every entry has a name, a severity, a count
// and advice. Notes on incomplete stacks are kept apart from losses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/losses.h"
#include "report/analysis/analysis.h"

namespace xpu {

struct LedgerEntry {
  std::string name;  // stable, for scripts: LossInfo::name or one of the report's own
  Severity severity = Severity::kNote;
  uint64_t count = 0;
  std::string what;
  std::string advice;                // may be empty
  std::vector<std::string> details;  // different ones, the first few, "and 3 more"
};

// True for what this machine cannot name: nothing is missing from the capture.
inline bool IsAboutSymbols(const LedgerEntry& entry) {
  return entry.name.starts_with("file_") && entry.name != InfoOf(LossKind::kFileCut).name;
}

// True for stacks that end early: some do in every recording, in the first instructions of a
// library for instance, and everything that was seen is there.
inline bool IsAboutStacks(const LedgerEntry& entry) {
  const LossInfo* info = FindLoss(entry.name);
  return (info != nullptr && IsAboutStacks(info->kind)) || entry.name == "python_stack_doubtful";
}

// Whether --strict fails: events are missing from the capture, or poorer than they should be.
inline bool LosesData(const LedgerEntry& entry) {
  return entry.severity != Severity::kNote && !IsAboutSymbols(entry) && !IsAboutStacks(entry);
}

// "lost", as in captures' dumps.
std::string_view SeverityName(Severity severity);
// The name for views: "note" for all that loses no data.
std::string_view SeverityName(const LedgerEntry& entry);

// Entries that are not zero, the worst first, then by name. Call it after a view, so that it has
// what the symbolizer found on the way.
std::vector<LedgerEntry> BuildLedger(const Analysis& analysis);

// The ledger as the views other than the summary print it:
// "12 CPU samples dropped: ... (sample_ring_full)" and its advice, for stderr; what is about
// stacks, as in every recording, in one line, and what is about the names of files, as under every
// view, in another; notes left out.
std::string LedgerText(const std::vector<LedgerEntry>& ledger);

}  // namespace xpu
