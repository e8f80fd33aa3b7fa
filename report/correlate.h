// Pass 5: which call of the program caused which GPU work.
//
// Calls, launch stacks and GPU records belong together when they share (instance, correlation id).
// The id has 32 bits and wraps, so one instance may use the same id more than once; times, hours
// apart, then decide. Nothing is ever matched by time alone here.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "report/api_names.h"
#include "report/clock_fit.h"
#include "report/model.h"

namespace xpu {

// How two things were found to belong together.
enum class MatchKind : uint8_t {
  kNone = 0,
  kById = 1,         // the id occurs once
  kByIdAndTime = 2,  // the id occurs more than once: the nearest in time
};

// One call that makes the GPU work: the call, its stack, or both.
struct Launch {
  InstanceId instance;
  uint32_t correlation_id = 0;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  ApiKind kind = ApiKind::kOther;
  bool has_call = false;  // else start_ns = end_ns = the time of the stack
  bool has_stack = false;
  MatchKind stack_match = MatchKind::kNone;
  uint8_t stack_flags = 0;
  StackId stack;
  uint32_t pid = 0;          // as the recorder sees it, 0: unknown
  uint32_t tid = 0;          // likewise
  uint32_t program_tid = 0;  // as the program sees it, 0: unknown
  int32_t return_value = 0;
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint32_t work_count = 0;  // GPU records matched to it
};

enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset, kGraph, kSynchronization };

// One GPU record. `index` is its place in the list of its kind.
struct GpuWork {
  static constexpr uint32_t kNoLaunch = std::numeric_limits<uint32_t>::max();

  InstanceId instance;
  WorkKind kind = WorkKind::kKernel;
  MatchKind match = MatchKind::kNone;
  bool timed = false;  // else CUPTI gave no valid time and the three below are 0
  uint32_t index = 0;
  uint32_t correlation_id = 0;
  uint32_t launch = kNoLaunch;  // in Correlation::launches
  uint32_t device_id = 0;
  uint32_t stream_id = 0;
  uint64_t start_ns = 0;     // CLOCK_MONOTONIC
  uint64_t end_ns = 0;       // CLOCK_MONOTONIC
  uint64_t duration_ns = 0;  // on the GPU's own clock: what all sums are made of
};

struct Correlation {
  std::vector<Launch> launches;  // by (instance, correlation id, time)
  std::vector<GpuWork> work;     // kernels, copies, sets, graphs, synchronisations, each as in file

  struct Process {
    uint32_t pid = 0;            // as the recorder sees it, 0: unknown
    uint32_t namespace_pid = 0;  // as it sees itself
    bool has_work = false;       // GPU records came from it
  };
  std::unordered_map<InstanceId, Process> processes;

  // Of launches that start kernels or graphs: seen = matched + pending + failed.
  struct Counts {
    uint64_t launches_seen = 0;
    uint64_t launches_matched = 0;
    uint64_t launches_pending = 0;  // no record came
    uint64_t launches_failed = 0;   // the call returned an error and no record came
    uint64_t stacks_missing = 0;    // launches of all kinds without a stack, or with an empty one
    uint64_t stacks_duplicate = 0;  // a second stack for one call: the first one counts
    uint64_t kernels_without_launch = 0;
    uint64_t kernels_before_launch = 0;  // the fitted clocks say so
    uint64_t work_without_time = 0;
  } counts;

  // The smallest distance from a launch call to the start of its kernel; negative: the fitted
  // clocks are off by as much. None: no matched kernel has a time.
  std::optional<int64_t> worst_margin_ns;
};

bool IsPending(const Launch& launch);

// `model` in order of time.
Correlation Correlate(const Model& model, const Clocks& clocks, const ApiNames& names);

}  // namespace xpu
