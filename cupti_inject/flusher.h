// Our own thread: takes from CUPTI what is finished, pairs the clocks, ends the recording. Sleeps
// without a timeout while CUPTI holds no buffer, so a program that leaves the GPU alone pays
// nothing.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// The same work on the calling thread, which is ours: after an attach. `peer`: the recorder, whose
// end is noticed at once. Returns when the library has left the program, or the program exits.
void RunAttached(Injection& self, const WakeDescriptor& peer);
// False: there is none; then StopFlusher does what is left of its work.
bool StartFlusher(Injection& self);
// What has perhaps registered exit handlers of its own by now. They run last in, first out, and
// must not find us in the driver or in CUPTI, so one of ours comes after each.
enum class ExitHandler : uint8_t { kAfterDriver, kAfterLoading, kAfterSubscribing };
// Registers with libc, once in a process for each of these, that StopFlusher is called at exit.
// False: the program exits already.
bool HandleExit(ExitHandler which);
// At exit: waits, bounded, for the last flush and until CUPTI is given back.
void StopFlusher(Injection& self);

}  // namespace xpu::inject
