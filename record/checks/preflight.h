// What a recording needs of this machine and this user, asked before the program is started.
#pragma once

#include <string>

#include "format/base/result.h"
#include "record/options/options.h"

namespace xpu {

// "CPU samples and probes": what of the recording needs BPF; empty: nothing does.
std::string NeedsOfBpf(const RecordOptions& options);

// Says exactly what is missing and how to get it, for what the options ask.
Status Preflight(const RecordOptions& options);

}  // namespace xpu
