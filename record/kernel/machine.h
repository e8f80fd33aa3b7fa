// What this machine lets this process do, asked by trying it, and what stands in the way where it
// does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xpu {

inline constexpr char kBtfPath[] = "/sys/kernel/btf/vmlinux";

struct Machine {
  std::string release;
  uint64_t capabilities = 0;  // effective
  bool is_gvisor = false;     // its kernel in the user's space, which has neither BPF nor perf
  bool in_user_namespace = false;
  bool has_seccomp_filter = false;
  std::string lockdown;  // "none", "integrity", "confidentiality"; empty: nothing tells
  int perf_paranoid = 0;
  // An errno of the attempt, 0 where it worked.
  int ring_error = 0;     // a BPF map that is a ring buffer
  int program_error = 0;  // a BPF program on perf events that does nothing
  int atomics_error = 0;  // one that exchanges a value
  int cookies_error = 0;  // one that asks which probe it is of
  int perf_error = 0;     // a CPU clock on this process, of the kernel too
  int btf_error = 0;      // reading the kernel's types
};

Machine LookAtMachine();

struct Obstacle {
  std::string what;
  std::string cure;
};

// The first that stands in the way of BPF programs as ours; nullopt: nothing does. Capabilities
// that are missing are not looked at where all attempts worked.
std::optional<Obstacle> ObstacleToBpf(const Machine& machine);
// Of those that ask which probe was hit.
std::optional<Obstacle> ObstacleToProbes(const Machine& machine);
// Of perf events of the kernel.
std::optional<Obstacle> ObstacleToPerfEvents(const Machine& machine);

// "none [integrity] confidentiality": the one that is chosen.
std::string ChosenWord(const std::string& words);

}  // namespace xpu
