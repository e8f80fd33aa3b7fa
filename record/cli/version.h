// What `xpu-record --version` prints: what this build is made of, for reports of bugs.
#pragma once

#include <string>

namespace xpu {

std::string RecordVersionText();

}  // namespace xpu
