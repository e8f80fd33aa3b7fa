#pragma once

#include <string>

namespace xpu {

// The absolute path of tests/ in the clone that was built.
std::string TestsDirectory();

}  // namespace xpu
