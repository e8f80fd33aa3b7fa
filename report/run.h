// A report from the parsed command line: load, analyse, write one view.
#pragma once

#include <string>

#include "format/base/result.h"
#include "report/options.h"

namespace xpu {

// `notes` gets what the user should know beside the view, for standard error: what was left out,
// what is missing from the capture.
Status RunReport(const ReportOptions& options, std::string& notes);

}  // namespace xpu
