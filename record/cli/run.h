// Runs xpu-record from its command line to its exit status.
#pragma once

#include "record/session/sources.h"

namespace xpu {

// Does not return after a recording: this process then ends as the program did.
int RunRecorder(int argc, char** argv, TestHooks hooks = {});

}  // namespace xpu
