// What a recording needs of this machine, this user and the limits of this process, asked before
// the program is started.
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

// "CPU samples and probes": what of the recording needs BPF; empty: nothing does.
std::string NeedsOfBpf(const RecordOptions& options);

// Says exactly what is missing and how to get it, for what the options ask.
Status Preflight(const RecordOptions& options);

}  // namespace xpu
