// Our own thread: takes from CUPTI what is finished, pairs the clocks, ends the recording. Sleeps
// without a timeout while CUPTI holds no buffer, so a program that leaves the GPU alone pays
// nothing.
#pragma once

#include "cupti_inject/injection.h"
#include "cupti_inject/setup.h"

namespace xpu::inject {

// The same work on the calling thread, which is ours: after an attach. `peer`: the recorder, whose
// end is noticed at once. Returns when the library has left the program, or the program exits.
void RunAttached(Injection& self, const WakeDescriptor& peer);
// False: there is none; then StopFlusher does what is left of its work.
bool StartFlusher(Injection& self);
// Registers with libc, once in a process for each step, that StopFlusher is called at exit. False:
// the last handler has run. Exit handlers run last in, first out, and those of the driver and of
// CUPTI must not find us in either: ours come after theirs.
bool HandleExit(SetUpStep step);
// At exit: waits, bounded, for the last flush and until CUPTI is given back.
void StopFlusher(Injection& self);

}  // namespace xpu::inject
