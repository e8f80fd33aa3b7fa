// What the resource limits of this process leave to use.
#pragma once

#include <cstdint>

namespace xpu {

// RLIMIT_NOFILE; UINT64_MAX if there is no limit.
uint64_t AllowedDescriptors();

// What RLIMIT_AS leaves; UINT64_MAX if there is no limit.
uint64_t FreeAddressBytes();

// What RLIMIT_DATA leaves, which limits all private writable memory; UINT64_MAX if there is no
// limit.
uint64_t FreeDataBytes();

// RLIMIT_FSIZE, which the kernel also applies to shared memory (memfd); UINT64_MAX if there is no
// limit.
uint64_t LargestFileBytes();

}  // namespace xpu
