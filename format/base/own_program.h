// Starting the running program once more, as a helper process.
#pragma once

#include <sys/types.h>

namespace xpu {

// `input` becomes its standard input; its outputs go nowhere. It has a process group of its own, so
// that Ctrl-C reaches only its parent, which then ends it in order; signals are as a shell leaves
// them. The lists end with a null pointer. Returns an errno value, 0: `child` is its process.
int StartOwnProgram(int input, char* const arguments[], char* const environment[], pid_t* child);

}  // namespace xpu
