// A report from the parsed command line: load, analyse, write one view; or its help.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/cli/options.h"
#include "report/cli/report_options.h"

namespace xpu {

struct ReportOutcome {
  // Notes for the user beside the view, for standard error: what was left out, what is missing from
  // the capture.
  std::string notes;
  bool data_lost = false;  // LosesData of an entry of the ledger
};

// On standard output.
Status PrintHelp(const Help& help);

// `outcome` is valid after an error too.
Status RunReport(const ReportOptions& options, ReportOutcome& outcome);

// ---- run_each.cpp
//
// --each: the tables of every capture on its own, as queries over many captures read them.
//
// Each capture is read by a process of its own, as many at a time as there are processors. So
// memory is that of the largest captures, so many of them, and goes back as a whole; and a capture
// that cannot be read, whatever it does to its reader, is left out and changes no other. Threads
// would share the memory and the failure.

// Names of the tables of each capture: the name of the capture without ".xpu", or, where captures
// in several directories have one name, with these. kUsage: a capture is named twice.
Result<std::vector<std::string>> NamesOfEach(const std::vector<std::string>& captures);

// An error where captures were left out, which `outcome` names.
Status RunEach(const ReportOptions& options, ReportOutcome& outcome);

}  // namespace xpu
