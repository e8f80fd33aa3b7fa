#include "tests/unit/tests_directory.h"

namespace xpu {

std::string TestsDirectory() { return XPU_TESTS_DIR; }

}  // namespace xpu
