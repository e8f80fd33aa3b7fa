// What operators of a framework cost: the GPU time of the kernels that they launch, and the time of
// the calls that launch them.
//
// Operators are found in the stacks of launches, in ranges that XLA marks, and in names of kernels
// that a compiler has named after what they do. So there is no count of calls, and an operator that
// launches nothing does not occur.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
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

// By self time, largest first, then total time and name.
std::vector<OperatorCost> OperatorCosts(Analysis& analysis, const PathOptions& paths);

// Kernels by the library that they are of: KernelLibraryOf.
std::vector<Statistics> KernelLibraryTimes(const Analysis& analysis);

}  // namespace xpu
