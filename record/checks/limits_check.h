// Whether the limits of this process leave enough for a recording. What fails for want of them
// fails anywhere, in libraries too, and seldom says why.
#pragma once

#include <cstdint>
#include <string>

#include "format/base/result.h"
#include "record/options/options.h"

namespace xpu {

// `uses_bpf`: the recording loads BPF programs.
Status CheckOwnLimits(const RecordOptions& options, bool uses_bpf);

// For people: "1024 descriptors, 3.2 GiB of address space, any memory, files of any size".
std::string OwnLimitsText();

}  // namespace xpu
