// Parses the command line of xpu-record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/result.h"
#include "record/options/options.h"

namespace xpu {

struct ParsedCommandLine {
  RecordOptions options;
  // Printed instead of recording, for --help and --version.
  std::optional<std::string> answer;
};

// Errors are of ErrorKind::kUsage. Everything after the program's name belongs to the program.
Result<ParsedCommandLine> ParseCommandLine(int argc, const char* const* argv);

std::vector<CommandLineOption> RecordCommandLineOptions();

}  // namespace xpu
