// --each: the tables of every capture on its own, as queries over many captures read them.
//
// Each capture is read by a process of its own, as many at a time as there are processors. So
// memory is that of the largest captures, so many of them, and goes back as a whole; and a capture
// that cannot be read, whatever it does to its reader, is left out and changes no other. Threads
// would share the memory and the failure.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/cli/report_options.h"
#include "report/cli/run.h"

namespace xpu {

// What the tables of each capture are called: its name without ".xpu", or, where captures in
// several directories have one name, with these. kUsage: a capture is named twice.
Result<std::vector<std::string>> NamesOfEach(const std::vector<std::string>& captures);

// An error where captures were left out, which `outcome` names.
Status RunEach(const ReportOptions& options, ReportOutcome& outcome);

}  // namespace xpu
