// Finds the calls of the program that make the GPU work, each with its CPU stack.
//
// A call and the stack at its entry share (instance, correlation id). The id has 32 bits and wraps,
// so one instance may use the same id more than once; times, hours apart, then decide. What probes
// on the CUDA libraries saw has no id: it is matched by thread and time (probe_launches.h).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "report/model/model.h"
#include "report/trace/launch.h"

namespace xpu {

struct LaunchTable {
  LaunchList launches;  // by (instance, correlation id, time); then those of probes, by time
  size_t with_id = 0;   // how many there are of the first sort
  uint64_t stacks_duplicate = 0;  // a second stack for one call: the first one counts
  std::unordered_map<InstanceId, CudaProcess> processes;
};

// `model` in order of time.
LaunchTable FindLaunches(const Model& model, const Tracks& tracks, const ApiNames& names,
                         CorrelateBy by = CorrelateBy::kAuto);

}  // namespace xpu
