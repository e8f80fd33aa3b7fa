// What the limits of this process leave.
#pragma once

#include <cstdint>

namespace xpu {

// RLIMIT_NOFILE; UINT64_MAX: there is no limit.
uint64_t AllowedDescriptors();

// What RLIMIT_AS leaves; UINT64_MAX: there is no limit.
uint64_t FreeAddressBytes();

// What RLIMIT_DATA leaves, which counts all memory that is written to and not shared; UINT64_MAX:
// there is no limit.
uint64_t FreeDataBytes();

// RLIMIT_FSIZE, which the kernel applies to memory that is shared (memfd) too; UINT64_MAX: there is
// no limit.
uint64_t LargestFileBytes();

}  // namespace xpu
