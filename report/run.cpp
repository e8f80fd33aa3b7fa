#include "report/run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "format/base/text.h"
#include "report/analysis.h"
#include "report/ledger.h"
#include "report/load.h"

namespace xpu {
namespace {

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat info_a {};
  struct stat info_b {};
  return ::stat(a.c_str(), &info_a) == 0 && ::stat(b.c_str(), &info_b) == 0 &&
         info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

void WriteView(const ReportOptions& options, Analysis& analysis, Output& output,
               std::string& notes) {
  switch (options.view) {
    case View::kSummary:
      return WriteSummary(analysis, options.kernel_names, output);
    case View::kFolded:
      return WriteFolded(analysis, options.folded, output, notes);
    case View::kChromeTrace:
      return WriteChromeTrace(
          analysis, {.kernel_names = options.kernel_names, .graph_stacks = options.graph_stacks},
          output);
    case View::kTop:
      return WriteTop(analysis, options.top, output);
    case View::kDump:
      return WriteDump(analysis, output);
  }
}

}  // namespace

Status RunReport(const ReportOptions& options, ReportOutcome& outcome) {
  if (!options.output.empty() && IsSameFile(options.output, options.capture)) {
    return Error{ErrorKind::kUsage, Format("{}: is the capture itself", options.output),
                 "choose another name for -o"};
  }
  XPU_ASSIGN_OR_RETURN(Model model, LoadCapture(options.capture));
  Analysis analysis(std::move(model));
  XPU_ASSIGN_OR_RETURN(Output output, Output::Open(options.output));
  WriteView(options, analysis, output, outcome.notes);
  const Status status = output.Close();
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  outcome.data_lost = std::any_of(ledger.begin(), ledger.end(), LosesData);
  if (!status.ok() && output.closed_by_reader()) return Ok();
  XPU_RETURN_IF_ERROR(status);
  // The summary and the dump hold the ledger themselves.
  if (options.view != View::kSummary && options.view != View::kDump) {
    outcome.notes += LedgerText(ledger);
  }
  return Ok();
}

}  // namespace xpu
