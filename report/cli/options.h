// The command line of xpu-report.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/result.h"
#include "report/cli/report_options.h"

namespace xpu {

// --help and --version: the text to print instead of a report.
struct Help {
  std::string text;
};

Result<std::variant<ReportOptions, Help>> ParseOptions(int argc, const char* const* argv);

std::vector<CommandLineOption> ReportCommandLineOptions();

}  // namespace xpu
