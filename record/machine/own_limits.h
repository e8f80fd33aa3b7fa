// Whether the limits of this process leave enough for a recording. What fails for want of them
// fails anywhere, in libraries too, and seldom says why.
#pragma once

#include <cstdint>
#include <string>

#include "format/base/result.h"
#include "record/options.h"

namespace xpu {

// `uses_bpf`: the recording loads BPF programs.
Status CheckOwnLimits(const RecordOptions& options, bool uses_bpf);

// What RLIMIT_AS leaves; UINT64_MAX: there is no limit.
uint64_t FreeAddressBytes();

// What RLIMIT_DATA leaves, which counts all memory that is written to and not shared; UINT64_MAX:
// there is no limit.
uint64_t FreeDataBytes();

// RLIMIT_FSIZE, which the kernel applies to memory that is shared (memfd) too; UINT64_MAX: there is
// no limit.
uint64_t LargestFileBytes();

// For people: "1024 descriptors, 3.2 GiB of address space, any memory, files of any size".
std::string OwnLimitsText();

}  // namespace xpu
