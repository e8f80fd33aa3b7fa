// What `xpu-report --help` and `--version` print.
#pragma once

#include <string>

namespace xpu {

std::string HelpText();

// What this build is made of, for reports of bugs.
std::string ReportVersionText();

}  // namespace xpu
