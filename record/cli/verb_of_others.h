// "xpu-record record -g ./app": a command of perf or nsys before the program.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/result.h"

namespace xpu {

// What is wrong when `words`, the program and its arguments, begin with such a command and no
// program has its name; the hint is what to type. `known`: the options of xpu-record.
std::optional<Error> CheckVerbOfOtherTools(const std::vector<std::string>& words,
                                           std::span<const CommandLineOption> known);

}  // namespace xpu
