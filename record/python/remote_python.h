// The Python frames of a thread that does not run: the walk of bpf/python.h, over the memory of
// another process.
#pragma once

#include <cstdint>
#include <vector>

#include "bpf/python_layout.h"
#include "record/sink/python_codes.h"

namespace xpu {

struct RemotePythonFrame {
  PythonCodes::Content code;
  bool is_entry = false;
  uint32_t offset = 0;
};

struct RemotePythonStack {
  std::vector<RemotePythonFrame> frames;  // innermost first
  uint32_t stop = XPU_PYTHON_COMPLETE;    // enum xpu_python_stop
};

// `thread`: its number in its own pid namespace, by which the interpreter knows it. No frames if
// the thread is not one of Python's.
RemotePythonStack ReadPythonStack(uint32_t pid, uint32_t thread, const xpu_python_process& python);

}  // namespace xpu
