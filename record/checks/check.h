// xpu-record --check: prints what works on this machine, what does not, and a hint for each.
//
// It tries the same calls that a recording makes instead of comparing versions, and asks only for
// what the other options need, so that its answer is that of a recording with the same options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/kernel/machine.h"
#include "record/options/options.h"

namespace xpu {

// One line of the output.
struct Ability {
  enum class State { kOk, kMissing, kAbsent };  // kAbsent: missing, but recording works without it
  std::string name;
  State state = State::kOk;
  std::string detail;
  std::string hint;  // for kMissing and kAbsent
};

std::string AbilityText(const Ability& ability);

// Whether -p can attach to running CUDA programs. `yama_scope`: as in ObstacleToTracing.
Ability AttachAbility(std::string_view yama_scope, uint64_t capabilities);

// Whether hardware counters (--gpu-metrics) and samples of GPU code (--gpu-samples) may be read, in
// profiling_check.cpp. `driver_parameters`: what kDriverParametersPath holds; empty: it is not
// there.
inline constexpr char kDriverParametersPath[] = "/proc/driver/nvidia/params";
std::vector<Ability> ProfilingAbilities(std::string_view driver_parameters, uint64_t capabilities,
                                        const RecordOptions& options);

// The abilities of the GPU side, in gpu_check.cpp.
std::vector<Ability> GpuAbilities(const RecordOptions& options, const Machine& machine);

// The abilities checked instead where nothing is injected, in probe_check.cpp.
std::vector<Ability> ProbeAbilities(const RecordOptions& options);

struct CheckResult {
  std::string text;  // a line for each ability; one JSON object with `options.check_as_json`
  bool works = false;
};

// Whether a recording with these options will work here, and why.
CheckResult Check(const RecordOptions& options);

}  // namespace xpu
