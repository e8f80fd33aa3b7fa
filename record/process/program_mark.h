// The program that the recorder starts is marked in the kernel, for BPF programs that others run
// into too (bpf/recorded.h): they pass the mark on to all that it starts.
#pragma once

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

// `map_fd`: of the map `recorded`. Before the program's exec, which the mark waits for.
Status MarkProgram(int map_fd, pid_t program);

}  // namespace xpu
