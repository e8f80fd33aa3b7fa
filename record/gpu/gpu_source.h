// Records the GPU side: it owns the injected library's connection to every CUDA process of the
// target (InjectServer, one GpuPeer each), the unwind tables that they share, and the uprobe on the
// library's marker where stacks are not taken inside the process.
//
// Every message comes from memory that the program can write and is checked; what a process can
// cost in memory is bounded, and a launch whose stack or record is missing is counted. Launches are
// correlated by id, never by time. Taking stacks inside the process is the default because a uprobe
// on the marker costs about twice as much per launch and needs privileges; the probe remains for
// processes that cannot do so. The probe is on a marker of the library rather than on the API
// functions of libcudart: its path is known before the program starts, and it also serves programs
// with a static cudart or without one.
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
#include "record/gpu/attached_processes.h"
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
  // Sets the environment variables that make the driver load the library.
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);

  Status Arm() override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  void Stop(EventSink& sink, bool may_go_on) override;
  // Readable when a program waits for the recorder, or when an attach has ended.
  std::vector<int> fds() const override;
  int DrainIntervalMs(uint64_t now_ns) const override;
  bool IsStarting() const override;
  std::vector<RangeChange> TakeRangeChanges() override { return std::exchange(range_changes_, {}); }

 private:
  GpuSource(SourceContext& context, InjectServer server)
      : context_(context), server_(std::move(server)) {}
  void SetVariables(bool nvtx);
  void UpdateAttached(EventSink& sink);
  void AcceptPeers(EventSink& sink);
  void CountRefusal(const InjectRefusal& refusal, EventSink& sink);
  std::string Objection(pid_t pid, uint64_t instance) const;
  void FinishPeer(GpuPeer& peer, EventSink& sink, GpuPeer::End end);
  void FlushPrograms(EventSink& sink);
  void FollowRange(GpuPeer& peer);
  void AnswerClaim(GpuPeer& peer);
  void ReportHang(GpuPeer& peer);
  void SetRange(const GpuPeer& peer, uint64_t time_ns, bool is_open, std::string cause);
  uint32_t Gate(bool others_open) const;
  void SetGates();
  void CountMissingStacks(EventSink& sink);
  void WatchCupti(GpuPeer& peer);
  void UseMarker(GpuPeer& peer);
  static bool FinishStacks(GpuPeer& peer, EventSink& sink);
  void GiveUpStacks(EventSink& sink);
  Status OpenMarker();

  SourceContext& context_;
  std::string library_;
  std::string cupti_library_;                      // empty: the injected library searches
  std::unique_ptr<UnreachedProcesses> unreached_;  // of the program that xpu-record starts
  PythonFiles python_files_;
  std::unique_ptr<SharedTables> shared_tables_;  // nullptr: no stacks are taken in processes
  std::optional<ProcessTracker> tracker_;        // used if the kernel does not report processes
  InjectServer server_;
  std::unique_ptr<AttachedProcesses> attached_;  // of processes that run already
  std::optional<LaunchSource> launches_;
  bool marker_tried_ = false;
  std::optional<CuptiWatch> cupti_watch_;  // used if BPF is available
  bool watch_tried_ = false;
  bool paused_ = false;
  bool in_programs_ = true;  // SwitchState
  std::set<InstanceId> in_range_;
  std::map<std::string, InstanceId> sampled_gpus_;  // by UUID
  std::vector<RangeChange> range_changes_;
  FairBudget memory_ = GpuPeer::Memory();
  std::vector<std::unique_ptr<GpuPeer>> peers_;
  std::vector<std::unique_ptr<GpuPeer>> ended_;  // ended; their last stacks wait for tables
  std::unordered_set<uint64_t> instances_;       // of all peers so far, but those that have left
  struct Markers {
    uint32_t pid = 0;
    uint64_t count = 0;
    std::string reason;  // why the process did not take the stacks itself; empty: unknown
  };
  InjectionReports reports_;
  std::map<InstanceId, Markers> markers_;  // of processes that have ended
};

}  // namespace xpu
