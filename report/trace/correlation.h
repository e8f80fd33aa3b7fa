// GPU work with the calls that caused it, as Correlate() finds them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>

#include "report/model/compact_list.h"
#include "report/model/loaded_events.h"
#include "report/trace/launch.h"

namespace xpu {

// Says what is known of the call that made the graph node of some work.
enum class NodeOrigin : uint8_t {
  kNoNode,           // it is not of a graph's node
  kKnown,            // GpuWork::creation
  kUnknown,          // something about its graph is known, but not this
  kBeforeRecording,  // nothing is known of its graph
};

// One GPU record. `index` is its place in the list of its kind.
struct GpuWork {
  static constexpr uint32_t kNoLaunch = std::numeric_limits<uint32_t>::max();

  InstanceId instance;
  WorkKind kind = WorkKind::kKernel;
  MatchKind match = MatchKind::kNone;
  NodeOrigin origin = NodeOrigin::kNoNode;
  bool timed = false;  // else CUPTI gave no valid time and the three below are 0
  uint32_t index = 0;
  uint32_t correlation_id = 0;
  uint32_t launch = kNoLaunch;    // in Correlation::launches
  uint32_t creation = kNoLaunch;  // likewise: the call that made its graph node
  uint32_t device_id = 0;         // as its process numbers it
  uint32_t gpu = 0;               // as reports number it
  uint32_t stream_id = 0;
  // The thread of its launch; without one the first thread of its process.
  ProcessId process;
  uint32_t pid = 0;
  uint32_t tid = 0;
  TrackId track;
  uint64_t called_ns = 0;    // when its launch began; without one its own start
  uint64_t start_ns = 0;     // CLOCK_MONOTONIC
  uint64_t end_ns = 0;       // CLOCK_MONOTONIC
  uint64_t duration_ns = 0;  // on the GPU's own clock: what all sums are made of

  Owner owner() const { return {process, pid, tid, called_ns, track}; }
  bool keeps_gpu_busy() const {
    return timed && end_ns > start_ns && kind != WorkKind::kSynchronization;
  }
  // Work without a time is put where its call is.
  uint64_t placed_ns() const { return timed ? start_ns : called_ns; }
};

template <SameEvent<GpuWork> T, typename Visit>
constexpr void VisitFields(T& work, Visit&& visit) {
  visit("instance", work.instance);
  visit("kind", work.kind);
  visit("match", work.match);
  visit("origin", work.origin);
  visit("timed", work.timed);
  visit("index", work.index);
  visit("correlation_id", work.correlation_id);
  visit("launch", work.launch);
  visit("creation", work.creation);
  visit("device_id", work.device_id);
  visit("gpu", work.gpu);
  visit("stream_id", work.stream_id);
  visit("process", work.process);
  visit("pid", work.pid);
  visit("tid", work.tid);
  visit("track", work.track);
  visit("called_ns", work.called_ns);
  visit("start_ns", work.start_ns);
  visit("end_ns", work.end_ns);
  visit("duration_ns", work.duration_ns);
}

using GpuWorkList = CompactList<GpuWork, &GpuWork::index, &GpuWork::correlation_id,
                                &GpuWork::launch, &GpuWork::creation, &GpuWork::called_ns,
                                &GpuWork::start_ns, &GpuWork::end_ns, &GpuWork::duration_ns>;
// No work.
inline constexpr uint32_t kNoWork = std::numeric_limits<uint32_t>::max();

struct Correlation {
  LaunchList launches;  // as in LaunchTable
  GpuWorkList work;     // kernels, memory operations, graphs, synchronizations, each as in file
  std::unordered_map<InstanceId, CudaProcess> processes;

  // The pid of an instance of the injected library, as the recorder sees it; 0: not known.
  uint32_t PidOf(InstanceId instance) const {
    const auto process = processes.find(instance);
    return process == processes.end() ? 0 : process->second.pid;
  }

  struct Counts {
    // Launches that start kernels or graphs and owe a record: seen = matched + pending + lost.
    uint64_t launches_seen = 0;
    uint64_t launches_matched = 0;
    uint64_t launches_pending = 0;  // no record came, and nothing says why
    uint64_t launches_lost = 0;     // no record came; the ledger's losses of the instance say why
    // Launches that owe no record.
    uint64_t launches_failed = 0;         // the call returned an error and no record came
    uint64_t launches_captured = 0;       // into a CUDA graph
    uint64_t launches_probed = 0;         // seen by probes: there are no GPU records
    uint64_t launches_probed_failed = 0;  // seen by probes, the call returned an error
    uint64_t stacks_missing = 0;     // launches of all kinds without a stack, or with an empty one
    uint64_t stacks_duplicate = 0;   // a second stack for one call: the first one counts
    uint64_t stacks_by_nesting = 0;  // stacks that their calls have without an id
    std::array<uint64_t, kMatchKinds> work_by_match{};  // without synchronizations
    uint64_t kernels_without_launch = 0;                // kernels and graph replays
    uint64_t work_without_launch = 0;                   // memory operations
    uint64_t waits_without_launch = 0;                  // synchronizations
    uint64_t kernels_before_launch = 0;                 // the fitted clocks say so
    uint64_t work_without_time = 0;
    uint64_t node_work_without_time = 0;    // the part of it that graph nodes did
    uint64_t node_work_without_origin = 0;  // kUnknown and kBeforeRecording
    uint64_t late_events = 0;               // later than the end of the recording
    // Nodes of replays that were recorded as one GraphLaunch.
    uint64_t hidden_kernels = 0;
    uint64_t hidden_copies_and_sets = 0;
    // The smallest distance from a launch call to the start of its kernel; negative: the fitted
    // clocks are off by as much. None: no matched kernel has a time.
    std::optional<int64_t> worst_margin_ns;
  } counts;  // of all
};

// CUPTI_SYNCHRONIZATION_INVALID_VALUE: the stream or event of a synchronization of something else.
inline constexpr uint32_t kNoSynchronizedObject = std::numeric_limits<uint32_t>::max();

// cuStreamWaitEvent makes a stream wait, and returns at once.
inline bool IsStreamWait(const LoadedEvents& events, const GpuWork& work) {
  constexpr uint32_t kStreamWaitEvent = 2;  // CUpti_ActivitySynchronizationType
  return work.kind == WorkKind::kSynchronization &&
         events.synchronizations.Get<&Synchronization::type>(work.index) == kStreamWaitEvent;
}

inline bool IsCpuWait(const LoadedEvents& events, const GpuWork& work) {
  return work.kind == WorkKind::kSynchronization && !IsStreamWait(events, work);
}

// 0 for a synchronization.
inline uint32_t ContextOf(const LoadedEvents& events, const GpuWork& work) {
  switch (work.kind) {
    case WorkKind::kKernel:
      return events.kernels.Get<&Kernel::context_id>(work.index);
    case WorkKind::kMemcpy:
      return events.memcpys.Get<&Memcpy::context_id>(work.index);
    case WorkKind::kMemset:
      return events.memsets.Get<&Memset::context_id>(work.index);
    case WorkKind::kGraph:
      return events.graph_launches.Get<&GraphLaunch::context_id>(work.index);
    case WorkKind::kSynchronization:
      break;
  }
  return 0;
}

}  // namespace xpu
