// The process that reads the debug information of one file for another process: the same program,
// started anew (reader_process.h).
#pragma once

namespace xpu {

// What the process is called, which is how `main` knows it.
inline constexpr char kDebugReaderName[] = "xpu-debug-reader";

// Whether this process was started as one. First thing in `main` of each program that sets
// DebugReading::kConfined.
bool IsDebugReader(int argc, char** argv);
// Answers on descriptor 0 until the asking process closes it; the status to exit with.
int RunDebugReader();

}  // namespace xpu
