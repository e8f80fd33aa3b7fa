// Costs of the operators of a framework: the GPU time of the kernels that they launch, and the time
// of the calls that launch them.
//
// Operators are found in the stacks of launches, in ranges that XLA marks, and in names of kernels
// that a compiler has named after what they do. So there is no count of calls, and an operator that
// launches nothing does not occur.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/query/gpu_busy.h"
#include "report/query/statistics.h"

namespace xpu {

struct OperatorCost {
  std::string name;          // "aten::addmm", "AddmmBackward0"; kNoOperator
  bool is_backward = false;  // it ran in the backward pass
  uint64_t self_ns = 0;      // GPU time of what it launches itself
  uint64_t total_ns = 0;     // and of what the operators that it calls launch
  uint64_t work = 0;         // kernels, memory operations and graph replays of `self_ns`
  uint64_t launches = 0;
  uint64_t launch_ns = 0;      // of the CUDA calls that launch them
  uint64_t idle_ns = 0;        // the GPU was idle until one of these
  std::string libraries = {};  // of the kernels, by their time: "cuBLAS, PyTorch"
};

// Instead of the operator of work that has none.
inline constexpr std::string_view kNoOperator = "[no operator]";

// In order of self time, largest first, then total time and name. `busy`: FindGpuBusy.
std::vector<OperatorCost> OperatorCosts(Analysis& analysis, CallPaths& paths,
                                        const std::vector<GpuBusy>& busy);

// Kernels by the library that they are of: KernelLibraryOf.
std::vector<Statistics> KernelLibraryTimes(const Analysis& analysis);

// ---- modules.cpp
//
// GPU work by torch.nn.Module: the chain of module calls in the stack of its launch.
//
// A call of a module is Module._call_impl of PyTorch; its class is that of the forward function
// that this calls, by its qualified name, and its place the line that called it. Reading the class
// of `self` while recording was rejected: it would be one more read in each walker of Python's
// stacks, and differs only where a class inherits its forward function, which is shown as its base.
//
// A loop over layers calls each of them from one line, so they are one entry. Threads of the
// backward pass have no Python frames: their work is by the nodes of the autograd graph.

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

// In order of total time, largest first, so that a module is before those in it. They add up to all
// GPU time. Empty if no module occurs.
std::vector<ModuleCost> ModuleCosts(Analysis& analysis, const PathOptions& paths);

}  // namespace xpu
