// Recognizes a subcommand of perf or nsys before the program: "xpu-record record -g ./app".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/result.h"

namespace xpu {

// Returns an error if `words`, the program and its arguments, begin with such a subcommand and no
// program has that name; its hint is the command to type. `known`: the options of xpu-record.
std::optional<Error> CheckOtherToolCommand(const std::vector<std::string>& words,
                                           std::span<const CommandLineOption> known);

}  // namespace xpu
