// GPU work by torch.nn.Module: the chain of module calls in the stack of its launch.
//
// A call of a module is Module._call_impl of PyTorch; its class is that of the forward function
// that this calls, by its qualified name, and its place the line that called it. Reading the class
// of `self` while recording was rejected: it would be one more read in each walker of Python's
// stacks, and differs only where a class inherits its forward function, which is shown as its base.
//
// A loop over layers calls each of them from one line, so they are one entry. Threads of the
// backward pass have no Python frames: their work is by the nodes of the autograd graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"

namespace xpu {

// In place of a module.
inline constexpr std::string_view kBackwardPass = "[backward]";
inline constexpr std::string_view kOutsideModules = "[outside modules]";

struct ModuleCost {
  std::string name;       // "Linear"; in the backward pass "AddmmBackward0"
  std::string path;       // "Model;Block;Linear"
  std::string called_at;  // "model.py:Block.forward:40": with its line, if frames have lines
  uint64_t self_ns = 0;   // GPU time of what it launches itself
  uint64_t total_ns = 0;  // and of what the modules in it launch
  uint64_t work = 0;      // kernels, memory operations and graph replays of `self_ns`
  uint64_t launches = 0;
  uint64_t launch_ns = 0;  // of the CUDA calls that launch them
  // How often it was called, as far as launches show it: how often the launch site of its typical
  // launch was passed. 0: not known, as of one that only calls others.
  uint64_t calls = 0;
};

// By total time, largest first, so that a module is before those in it. They add up to all GPU
// time. Empty if no module occurs.
std::vector<ModuleCost> ModuleCosts(Analysis& analysis, const PathOptions& paths);

}  // namespace xpu
