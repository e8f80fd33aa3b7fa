// What `xpu-report --help` prints.
#pragma once

#include <string>

namespace xpu {

std::string HelpText();

}  // namespace xpu
