// Our own thread: takes from CUPTI what is finished, pairs the clocks, ends the recording. While
// CUPTI holds no buffer it only asks once a second, in 0.1 ms, whether it is the last thread.
//
// Signals. The thread blocks all of them as long as the program has a thread of its own: the kernel
// would hand it one that all of these block, because another waits in sigwait or reads a signalfd,
// and a handler would run on a small stack within CUPTI. Nobody misses it: a signal that some of
// the program's threads do not block goes to one of these. Once it is the last thread, the program
// would have ended without us. So the thread ends then, upon which the C library calls exit, and
// lets SIGTERM, SIGINT and SIGHUP do meanwhile what the program has chosen for them.
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
