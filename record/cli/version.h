// What `xpu-record --version` prints: the components of this build, for bug reports.
#pragma once

#include <string>

namespace xpu {

std::string RecordVersionText();

}  // namespace xpu
