// The capabilities that BPF programs on perf events need, and how to get them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xpu {

// Numbers of Linux capabilities.
inline constexpr int kCapSysPtrace = 19;
inline constexpr int kCapSysAdmin = 21;
inline constexpr int kCapPerfmon = 38;
inline constexpr int kCapBpf = 39;

// The effective set of this process.
uint64_t EffectiveCapabilities();

// Names the capabilities for BPF programs on perf events that `effective` lacks, as "CAP_BPF and
// CAP_PERFMON"; empty if it has all.
std::string MissingCapabilities(uint64_t effective);

// "run as root, or once: sudo setcap cap_bpf,cap_perfmon+ep /usr/bin/xpu-record", with the path of
// this program. `more`: further capabilities, as ",cap_sys_ptrace".
std::string HowToGetCapabilities(std::string_view more = {});

}  // namespace xpu
