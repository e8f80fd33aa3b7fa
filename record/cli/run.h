// Runs xpu-record from its command line to its exit status.
#pragma once

namespace xpu {

struct TestHooks;  // record/session/sources.h

// Does not return after a recording: this process then ends as the program did.
int RunRecorder(int argc, char** argv);
int RunRecorder(int argc, char** argv, TestHooks hooks);

}  // namespace xpu
