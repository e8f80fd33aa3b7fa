// Which libraries of the program hold a copy of NVTX, as far as one can tell.
#pragma once

#include <cstdint>

namespace xpu::inject {

// How many mapped files export NVTX's functions, as libnvToolsExt and libnvtx3interop do. Copies
// that a library has compiled in hide them. Takes the loader's lock: never in a callback.
uint32_t CountNvtxLibraries();

}  // namespace xpu::inject
