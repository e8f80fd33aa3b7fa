// All event sources of one recording, as its options choose them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/cpu/cpu_source.h"
#include "record/gpu/gpu_source.h"
#include "record/gpu/unreached_processes.h"
#include "record/options/options.h"
#include "record/options/subject.h"
#include "record/probes/probe_source.h"
#include "record/process/running_processes.h"
#include "record/process/task_source.h"
#include "record/process/watched_processes.h"
#include "record/sink/event_sink.h"
#include "record/symbols/hit_files.h"
#include "record/unwind/unwind_tables.h"
#include "record/unwind/unwinder.h"

namespace xpu {

class Sources {
 public:
  // What must be there before the target is forked; adds to its environment. Tables of what the
  // target will map at its start are made or loaded here.
  static Result<Sources> Prepare(const RecordOptions& options,
                                 std::vector<std::string>& environment);
  // Between the target's fork and its exec; 0: no program is started.
  Status Arm(pid_t target);
  // Of the recording; nullptr: symbols are not wanted. It outlives this.
  void SetHits(HitFiles* hits) { hits_ = hits; }
  // The events that describe the sources.
  void Describe(EventSink& sink) const;
  // Processes that run already: what they are and have mapped, and the tables of that. Takes a
  // while; whatever happens meanwhile is not missed.
  void TellOfRunning(EventSink& sink);
  // What must be read from the running program when the kernel does not tell it.
  void AfterExec(pid_t target, EventSink& sink) const;

  CallGraph call_graph() const;
  bool takes_stacks_inline() const { return gpu_ && gpu_->takes_stacks_inline(); }

  // To wait on.
  std::vector<int> fds() const;
  // Whether to record from now on.
  struct Wanted {
    bool is_on = true;
    bool user_on = true;  // the program may be in no capture range nevertheless
  };
  void Switch(const Wanted& wanted);
  // Capture ranges that have begun or ended in programs since the last call.
  std::vector<RangeChange> TakeRangeChanges();
  // All of the processes that ran already, and what they started.
  bool HaveAllEnded() const { return watched_ && !watched_->AnyRuns(); }
  // How long the rings may be left alone: the BPF ones wake nobody, and perf's do not always.
  int DrainIntervalMs(uint64_t now_ns) const;
  // Takes what is there now.
  void Drain(EventSink& sink);
  // About once a second: losses counted elsewhere.
  void CountLosses(EventSink& sink);
  // Takes no more samples: a task at its end runs on after its process is told to have ended.
  void EndSampling();
  // The recording is over: takes all that is left. `early`: programs go on, as was asked for.
  void Stop(EventSink& sink, bool early);

 private:
  void OpenTables();
  Status OpenUnwinder(const std::vector<std::string>& environment);
  Status WatchRunning();
  void SeeRecord(const PerfRecord& record, EventSink& sink);
  void DrainTasks(EventSink& sink);
  void WaitForTables(EventSink& sink);

  RecordOptions options_;
  Subject subject_;
  uint64_t armed_ns_ = 0;
  std::optional<WatchedProcesses> watched_;
  std::unique_ptr<UnwindTables> tables_;
  std::unique_ptr<Unwinder> unwinder_;  // nullptr: stacks by frame pointers
  std::optional<TaskSource> tasks_;
  UnreachedProcesses unreached_;  // of a program that we start
  HitFiles* hits_ = nullptr;
  std::optional<CpuSource> cpu_;
  std::optional<GpuSource> gpu_;
  std::optional<ProbeSource> probes_;  // the user's, and for launches when nothing is injected
};

}  // namespace xpu
