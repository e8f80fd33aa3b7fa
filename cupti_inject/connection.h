// Between the process and the recorder that its environment names: made once, by whichever of CUDA
// and NVTX comes first.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// The first call connects, later ones wait for it, bounded. `wake`: see handshake.h, only of the
// one that connects. nullptr: there is no recorder, or its session has ended.
Injection* ConnectOnce(WakeDescriptor* wake);

}  // namespace xpu::inject
