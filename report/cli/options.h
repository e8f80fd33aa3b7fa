// The command line of xpu-report, and its help.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/help.h"
#include "format/base/result.h"
#include "report/cli/report_options.h"

namespace xpu {

// --help and --version: the text to print instead of a report.
struct Help {
  std::string text;
};

Result<std::variant<ReportOptions, Help>> ParseOptions(int argc, const char* const* argv);

std::vector<CommandLineOption> ReportCommandLineOptions();

// ---- help.cpp

std::string HelpText();

// The groups of --help GROUP.
std::span<const HelpGroup> HelpGroups();

// The version, format and libraries of this build, for bug reports.
std::string ReportVersionText();

}  // namespace xpu
