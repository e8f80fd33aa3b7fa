// How much the program may still map.
#pragma once

#include <cstdint>

namespace xpu::inject {

// What its limit (RLIMIT_AS) leaves; 0: it has none. A limit of which nobody tells how much is used
// (no /proc, no descriptor free) leaves 1.
uint64_t FreeAddressBytes();

}  // namespace xpu::inject
