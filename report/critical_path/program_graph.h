// The dependency graph of a recording: what each thread and each stream of a GPU did, and what it
// waited for.
//
// A thread is a chain of nodes: where it stops and goes on, where its CUDA calls begin and end,
// where the work of a call may start, and where it wakes another thread. A stream is one of starts
// and ends. Without --off-cpu nobody knows when a thread waited: it is then assumed to run, and to
// wait only for another thread of its process that launches meanwhile (autograd's, for instance).
// An edge that is there without a record that says so is marked as assumed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/base/growing_array.h"
#include "report/base/huge_pages.h"
#include "report/critical_path/dependency_graph.h"
#include "report/critical_path/gpu_streams.h"

namespace xpu {

// Where the code of a thread is at a node: its stack there.
struct Site {
  enum class Kind : uint8_t { kNone, kLaunch, kWait, kWaker };
  Kind kind = Kind::kNone;
  uint32_t index = 0;  // of a launch, or of a wait in the model's list
};

struct ThreadLane {
  Owner owner;
  std::vector<uint32_t> nodes;  // in order of time
};

class ProgramGraph {
 public:
  // Has all that was recorded in that part, whatever is shown. `analysis` must outlive this.
  explicit ProgramGraph(const Analysis& analysis, const RecordingPart& part = {});

  const DependencyGraph& graph() const { return graph_; }
  const std::vector<ThreadLane>& lanes() const { return lanes_; }
  // Whether the capture says when threads did not run.
  bool has_off_cpu() const { return has_off_cpu_; }

  // The place in lanes(); nullopt: the thread has none.
  std::optional<uint32_t> LaneOf(const ThreadKey& thread) const;
  // Its last node until then; nullopt: it begins later.
  std::optional<uint32_t> LastNode(uint32_t lane, uint64_t until_ns) const;
  // The site of a node of a thread; the lane of an edge of kind kRunning is its index.
  Site SiteOf(uint32_t node) const { return node < sites_.size() ? sites_[node] : Site{}; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Where a lane is cut. Of one time they come in this order.
  enum class CutKind : uint8_t {
    kReady,
    kWaitEnd,
    kCallEnd,
    kPoint,
    kWake,
    kCallStart,
    kWaitStart
  };
  struct Cut {
    uint64_t time_ns = 0;
    uint32_t index = 0;  // of a launch or a wait
    CutKind kind = CutKind::kPoint;
  };

  // Whether the thread that ended a wait explains it.
  enum class Waking : uint8_t { kUnknown, kRare, kUsual };
  struct Call {
    uint64_t end_ns = 0;
    uint32_t lane = 0;
    uint32_t launch = 0;
  };
  struct HandOver {
    uint32_t launch = 0;  // of another thread
    uint32_t node = 0;    // of the one that waits for it
    uint32_t lane = 0;    // that one
  };
  // State that only making the graph needs.
  struct Build {
    Build(const Analysis& analysis, const RecordingPart& part)
        : streams(analysis, part), gpu_waits(FindGpuWaits(analysis, streams)) {}

    const GpuStreams streams;
    const std::vector<GpuWait> gpu_waits;    // by launch
    std::vector<HugePageVector<Cut>> cuts;   // by lane
    HugePageVector<uint64_t> first_work_ns;  // by launch: when its work began
    // Nodes by what they are of; kNone: there is none.
    HugePageVector<uint32_t> launch_point;  // by launch: from where on its work may start
    HugePageVector<uint32_t> call_end;      // by launch
    HugePageVector<uint32_t> work_start;    // by work
    HugePageVector<uint32_t> work_end;      // by work
    std::vector<uint32_t> ready;            // by wait
    std::vector<uint32_t> waker;            // by wait: of the thread that ended it
    std::vector<Waking> waking;             // by wait
    // Without off-CPU time: calls of each process by their end, and which of them a node waits for.
    std::map<ProcessId, std::vector<Call>> calls;
    std::vector<HandOver> hand_overs;
  };

  void FindLanes();
  uint32_t AddLane(const Owner& owner);
  void AddWait(uint32_t place);
  void AddCall(uint32_t place);
  void AddEnds();
  void FindRareWakers();
  void MakeLane(uint32_t lane);
  // The state of a thread at a node.
  struct LaneState {
    uint32_t lane = 0;
    uint32_t wait = kNone;
    bool is_ready = false;  // it waits only for a CPU
    uint32_t call = kNone;
    bool is_working = false;  // the call has not come to where it waits for the GPU
  };
  bool WaitsForGpu(const LaneState& state) const;
  Edge EdgeOf(const LaneState& state) const;
  uint32_t MakeNode(const LaneState& state, uint64_t time_ns);
  void Apply(const Cut& cut, uint32_t node, bool is_hidden, LaneState& state);
  // Without off-CPU time.
  void OrderCalls();
  std::optional<uint32_t> LastCallOfOther(uint32_t lane, uint64_t from_ns, uint64_t to_ns) const;
  void MakeHandOvers();
  void MakeStreams();
  void MakeStream(const GpuStream& stream, uint64_t latency_ns);
  void MakeStreamWaits();
  void MakeGpuWaits();
  void MakeWakeUps();
  uint64_t LaunchLatency() const;
  bool IsWoken(const OffCpuWait& wait) const;

  const Analysis& analysis_;
  const LaunchList& launches_;
  const GpuWorkList& work_;
  const RecordingPart part_;
  const bool has_off_cpu_;
  DependencyGraph graph_;
  std::vector<ThreadLane> lanes_;
  std::map<ThreadKey, uint32_t> lane_of_;
  GrowingArray<Site> sites_;      // by node, of threads
  std::unique_ptr<Build> build_;  // none once the graph is made
};

}  // namespace xpu
