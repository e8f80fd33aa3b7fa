// The GPU side of a recording: the injected library in every CUDA process of the target, and where
// it does not take the launch stacks itself, the probe on its marker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "record/gpu/cupti_watch.h"
#include "record/gpu/gpu_peer.h"
#include "record/gpu/inject_server.h"
#include "record/gpu/launch_source.h"
#include "record/gpu/unreached_processes.h"
#include "record/options/options.h"
#include "record/process/process_tracker.h"
#include "record/sink/event_sink.h"
#include "record/unwind/table_arena.h"

namespace xpu {

// Whether the options ask the injected library to take the launch stacks.
bool WantsInlineStacks(const RecordOptions& options);

// The recorded programs are in a capture range now, or no longer in any.
struct RangeChange {
  uint64_t time_ns = 0;
  bool is_open = false;
  std::string cause;
};

class GpuSource {
 public:
  // Puts into `environment` what makes the driver load the library.
  static Result<GpuSource> Open(const RecordOptions& options,
                                std::vector<std::string>& environment);
  // Before the target's exec. `unwinder`: for a probe on the marker, nullptr: it walks by frame
  // pointers. `tables`: for stacks taken in the process, nullptr: likewise. Both outlive this.
  Status Arm(const Unwinder* unwinder, UnwindTables* tables);
  // Nobody else tells of processes, threads and mappings.
  void TellOfProcesses(pid_t target) { processes_.emplace(static_cast<uint32_t>(target)); }
  // The injected libraries take the launch stacks.
  bool takes_stacks_inline() const { return shared_tables_ != nullptr; }

  int fd() const { return server_.fd(); }
  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);
  // `may_go_on`: processes that have not ended were not expected to.
  void Stop(EventSink& sink, bool may_go_on);
  // The library that is to be in each process with CUDA.
  const std::string& library() const { return library_; }
  // What XPU_INJECT was set to for them.
  std::string invitation() const { return server_.EnvironmentValue(); }
  const InjectionReports& reports() const { return reports_; }
  // Launches from now on are recorded or not, as far as the user is concerned.
  void Pause(bool paused);
  // Since the last call, of all processes together.
  std::vector<RangeChange> TakeRangeChanges() { return std::exchange(range_changes_, {}); }

 private:
  explicit GpuSource(InjectServer server) : server_(std::move(server)) {}
  void AcceptPeers(EventSink& sink);
  std::string Objection(pid_t pid, uint64_t instance) const;
  void FinishPeer(GpuPeer& peer, EventSink& sink, GpuPeer::End end);
  void AskForTheRest(EventSink& sink);
  void FollowRange(GpuPeer& peer);
  void SetRange(const GpuPeer& peer, uint64_t time_ns, bool is_open, std::string cause);
  void SetGates();
  void CountMissingStacks(EventSink& sink);
  void WatchCupti(GpuPeer& peer);
  void UseMarker(GpuPeer& peer);
  static bool FinishStacks(GpuPeer& peer, EventSink& sink);
  void GiveUpStacks(EventSink& sink);
  Status OpenMarker();

  RecordOptions options_;
  std::string library_;
  PythonFiles python_files_;
  std::unique_ptr<SharedTables> shared_tables_;  // nullptr: stacks come by the marker, or not
  std::optional<ProcessTracker> processes_;
  const Unwinder* unwinder_ = nullptr;
  InjectServer server_;
  std::optional<LaunchSource> launches_;
  bool marker_tried_ = false;
  std::optional<CuptiWatch> cupti_watch_;  // where BPF is possible
  bool watch_tried_ = false;
  TestDrop drop_;
  bool paused_ = false;
  std::set<InstanceId> in_range_;
  std::vector<RangeChange> range_changes_;
  FairBudget memory_ = GpuPeer::Memory();
  std::vector<std::unique_ptr<GpuPeer>> peers_;
  std::vector<std::unique_ptr<GpuPeer>> ended_;  // whose last stacks wait for tables
  std::unordered_set<uint64_t> instances_;       // of all that ever were
  struct Markers {
    uint32_t pid = 0;
    uint64_t count = 0;
    std::string reason;  // that the stacks were not taken in the process; empty: not known
  };
  InjectionReports reports_;
  std::map<InstanceId, Markers> markers_;  // of the processes that have ended
};

}  // namespace xpu
