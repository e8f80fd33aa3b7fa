// What `xpu-report --help` and `--version` print.
#pragma once

#include <span>
#include <string>

#include "format/base/help.h"

namespace xpu {

std::string HelpText();

// Of --help GROUP.
std::span<const HelpGroup> HelpGroups();

// What this build is made of, for reports of bugs.
std::string ReportVersionText();

}  // namespace xpu
