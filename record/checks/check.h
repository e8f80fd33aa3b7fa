// xpu-record --check: what works on this machine, what does not, and the cure for each.
#pragma once

#include <string>
#include <vector>

#include "record/kernel/machine.h"
#include "record/options/options.h"

namespace xpu {

// One line of the answer.
struct Ability {
  enum class State { kOk, kMissing, kAbsent };  // kAbsent: missing, but recording works without it
  std::string name;
  State state = State::kOk;
  std::string detail;
  std::string cure;  // of kMissing and kAbsent
};

std::string AbilityText(const Ability& ability);

// Those of the GPU side, in gpu_check.cpp.
std::vector<Ability> GpuAbilities(const RecordOptions& options, const Machine& machine);

// In their place where nothing is injected, in probe_check.cpp.
std::vector<Ability> ProbeAbilities(const RecordOptions& options);

// Prints a line for each ability to standard output. 0: recording will work, 1: it will not.
int PrintCheck(const RecordOptions& options);

}  // namespace xpu
