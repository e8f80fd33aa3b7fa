// The capabilities that BPF programs on perf events need, and how to get them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xpu {

// Linux capabilities by their number.
inline constexpr int kCapSysPtrace = 19;
inline constexpr int kCapSysAdmin = 21;
inline constexpr int kCapPerfmon = 38;
inline constexpr int kCapBpf = 39;

// The effective set of this process.
uint64_t EffectiveCapabilities();

// Which of the capabilities for BPF programs on perf events `effective` lacks, by name: "CAP_BPF
// and CAP_PERFMON"; empty: none.
std::string MissingCapabilities(uint64_t effective);

// "run as root, or once: sudo setcap cap_bpf,cap_perfmon+ep /usr/bin/xpu-record", by the path of
// this program. `more` are others, as ",cap_sys_ptrace".
std::string HowToGetCapabilities(std::string_view more = {});

}  // namespace xpu
