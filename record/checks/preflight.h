// Checks what a recording needs from this machine, this user and the limits of this process, before
// the program starts.
#pragma once

#include <cstdint>
#include <string>

#include "format/base/result.h"
#include "record/options/options.h"

namespace xpu {

// `uses_bpf`: the recording loads BPF programs.
Status CheckOwnLimits(const RecordOptions& options, bool uses_bpf);

// For messages: "1024 descriptors, 3.2 GiB of address space, any memory, files of any size".
std::string OwnLimitsText();

// Lists what needs BPF in this recording, as "CPU samples and probes"; empty if nothing does.
std::string NeedsOfBpf(const RecordOptions& options);

// An error says exactly what is missing for these options and how to get it.
Status Preflight(const RecordOptions& options);

}  // namespace xpu
