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
#include "record/process/process_tracker.h"
#include "record/source/source.h"
#include "record/unwind/table_arena.h"

namespace xpu {

class GpuSource : public Source {
 public:
  // Puts into the environment what makes the driver load the library.
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);

  Status Arm() override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  void Stop(EventSink& sink, bool may_go_on) override;
  std::vector<int> fds() const override { return {server_.fd()}; }  // a program that waits for us
  int DrainIntervalMs(uint64_t now_ns) const override;
  std::vector<RangeChange> TakeRangeChanges() override { return std::exchange(range_changes_, {}); }

 private:
  GpuSource(SourceContext& context, InjectServer server)
      : context_(context), server_(std::move(server)) {}
  void AcceptPeers(EventSink& sink);
  std::string Objection(pid_t pid, uint64_t instance) const;
  void FinishPeer(GpuPeer& peer, EventSink& sink, GpuPeer::End end);
  void FlushPrograms(EventSink& sink);
  void FollowRange(GpuPeer& peer);
  void SetRange(const GpuPeer& peer, uint64_t time_ns, bool is_open, std::string cause);
  void Pause(bool paused);
  void SetGates();
  void CountMissingStacks(EventSink& sink);
  void WatchCupti(GpuPeer& peer);
  void UseMarker(GpuPeer& peer);
  static bool FinishStacks(GpuPeer& peer, EventSink& sink);
  void GiveUpStacks(EventSink& sink);
  Status OpenMarker();

  SourceContext& context_;
  std::string library_;
  std::unique_ptr<UnreachedProcesses> unreached_;  // of a program that we start
  PythonFiles python_files_;
  std::unique_ptr<SharedTables> shared_tables_;  // nullptr: stacks come by the marker, or not
  std::optional<ProcessTracker> tracker_;        // where the kernel reports no processes
  InjectServer server_;
  std::optional<LaunchSource> launches_;
  bool marker_tried_ = false;
  std::optional<CuptiWatch> cupti_watch_;  // where BPF is possible
  bool watch_tried_ = false;
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
