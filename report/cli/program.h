// Runs xpu-report from its command line to its exit status.
#pragma once

namespace xpu {

int RunReporter(int argc, char** argv);

}  // namespace xpu
