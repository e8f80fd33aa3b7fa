// Finds out, by trying, what this machine lets this process do, and what prevents the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpu {

inline constexpr char kBtfPath[] = "/sys/kernel/btf/vmlinux";
inline constexpr char kYamaPath[] = "/proc/sys/kernel/yama/ptrace_scope";

struct Machine {
  std::string release;
  uint64_t capabilities = 0;  // effective
  bool is_gvisor = false;     // a user-space kernel, which has neither BPF nor perf
  bool in_user_namespace = false;
  bool has_seccomp_filter = false;
  std::string lockdown;  // "none", "integrity", "confidentiality"; empty: unknown
  int perf_paranoid = 0;
  // The errno of each attempt; 0 if it worked.
  int ring_error = 0;     // a BPF ring buffer map
  int program_error = 0;  // an empty BPF program for perf events
  int atomics_error = 0;  // a BPF program that exchanges a value atomically
  int cookies_error = 0;  // a BPF program that reads its attach cookie
  int perf_error = 0;     // a CPU clock on this process, including the kernel
  int btf_error = 0;      // reading the kernel's type information
};

Machine ExamineMachine();

struct Obstacle {
  std::string what;
  std::string hint;
};

// The first obstacle to the recorder's BPF programs; nullopt if there is none. Missing capabilities
// do not count if all attempts worked.
std::optional<Obstacle> ObstacleToBpf(const Machine& machine);
// The same for programs that read their attach cookie.
std::optional<Obstacle> ObstacleToProbes(const Machine& machine);
// The same for perf events that include the kernel.
std::optional<Obstacle> ObstacleToPerfEvents(const Machine& machine);

// The same for ptrace of other processes. `yama_scope` is the content of
// kernel.yama.ptrace_scope (kYamaPath), empty where the kernel has no Yama.
std::optional<Obstacle> ObstacleToTracing(std::string_view yama_scope, uint64_t capabilities);

// The selected word of "none [integrity] confidentiality".
std::string ChosenWord(const std::string& words);

}  // namespace xpu
