// A report from the parsed command line: load, analyse, write one view; or its help.
#pragma once

#include <string>

#include "format/base/result.h"
#include "report/cli/options.h"

namespace xpu {

struct ReportOutcome {
  // What the user should know beside the view, for standard error: what was left out, what is
  // missing from the capture.
  std::string notes;
  bool data_lost = false;  // LosesData of an entry of the ledger
};

// On standard output.
Status PrintHelp(const Help& help);

// `outcome` is valid after an error too.
Status RunReport(const ReportOptions& options, ReportOutcome& outcome);

}  // namespace xpu
