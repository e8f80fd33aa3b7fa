// What a recording needs of this machine and this user, asked before the program is started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/options.h"

namespace xpu {

// Linux capabilities by their number in CapEff.
inline constexpr int kCapSysPtrace = 19;
inline constexpr int kCapSysAdmin = 21;
inline constexpr int kCapPerfmon = 38;
inline constexpr int kCapBpf = 39;

// The effective set of this process; 0 when it cannot be read.
uint64_t EffectiveCapabilities();

// Which of the capabilities for BPF programs on perf events `effective` lacks, by name.
std::vector<std::string> MissingCapabilities(uint64_t effective);

inline constexpr char kBtfPath[] = "/sys/kernel/btf/vmlinux";

// Says exactly what is missing and how to get it, for what the options ask.
Status Preflight(const RecordOptions& options);

}  // namespace xpu
