// How long each rank communicated, computed, and did both at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "report/base/text.h"
#include "report/workload/steps.h"

namespace xpu {

struct Communication {
  uint32_t rank = 0;   // in Job::ranks()
  uint64_t steps = 0;  // 0: of the whole recording, in which no steps that communicate were found
  uint64_t step = 0;   // its number, if this is of one step
  uint64_t duration_ns = 0;
  uint64_t communication_ns = 0;  // kernels of NCCL ran
  uint64_t computation_ns = 0;    // other kernels did
  uint64_t both_ns = 0;

  uint64_t exposed_ns() const { return communication_ns - both_ns; }
  // The part of the duration, at most all of it: kernels may run on after the step that launched
  // them.
  double exposed_percent() const {
    return PercentOf(std::min(exposed_ns(), duration_ns), duration_ns);
  }
};

// Kernels are of the step that launched them. Of each rank, all of its steps after the warm-up
// together or, with `each_step`, one by one. Ranks without kernels of NCCL are left out.
std::vector<Communication> FindCommunication(Analysis& analysis, const StepDefinition& steps,
                                             bool each_step);

}  // namespace xpu
