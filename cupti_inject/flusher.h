// Our own thread: takes from CUPTI what is finished, pairs the clocks, ends the recording. Sleeps
// without a timeout while CUPTI holds no buffer, so a program that leaves the GPU alone pays
// nothing.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// False: there is none; then StopFlusher does what is left of its work.
bool StartFlusher(Injection& self);
// At exit: waits, bounded, for the last flush and until CUPTI is given back.
void StopFlusher(Injection& self);

}  // namespace xpu::inject
