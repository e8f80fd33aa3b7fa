// Between the process and the recorder: made once, by whichever of CUDA and NVTX comes first.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// The first call connects, later ones wait for it, bounded. `wake`: see handshake.h, only of the
// one that connects. False: there is no recorder.
bool ConnectOnce(Injection& self, WakeDescriptor* wake);

}  // namespace xpu::inject
