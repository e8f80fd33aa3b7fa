// All event sources of one recording, as its options choose them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/cpu_source.h"
#include "record/event_sink.h"
#include "record/gpu_source.h"
#include "record/options.h"
#include "record/probe_source.h"
#include "record/task_source.h"
#include "record/unwind_tables.h"
#include "record/unwinder.h"

namespace xpu {

class Sources {
 public:
  // What must be there before the target is forked; adds to its environment. Tables of what the
  // target will map at its start are made or loaded here.
  static Result<Sources> Prepare(const RecordOptions& options,
                                 std::vector<std::string>& environment);
  // Between the target's fork and its exec.
  Status Arm(pid_t target);
  // The events that describe the sources.
  void Describe(EventSink& sink) const;
  // What must be read from the running program when the kernel does not tell it.
  void AfterExec(pid_t target, EventSink& sink) const;

  CallGraph call_graph() const;
  bool takes_stacks_inline() const { return gpu_ && gpu_->takes_stacks_inline(); }

  // To wait on.
  std::vector<int> fds() const;
  // How long the rings may be left alone: the BPF ones wake nobody, and perf's do not always.
  int DrainIntervalMs(uint64_t now_ns) const;
  // Takes what is there now.
  void Drain(EventSink& sink);
  // About once a second: losses counted elsewhere.
  void CountLosses(EventSink& sink);
  // The target has ended: takes all that is left.
  void Stop(EventSink& sink);

 private:
  void OpenTables();
  Status OpenUnwinder(const std::vector<std::string>& environment);
  const UnwindMaps* maps() const { return unwinder_ ? &unwinder_->maps() : nullptr; }

  RecordOptions options_;
  std::unique_ptr<UnwindTables> tables_;
  std::unique_ptr<Unwinder> unwinder_;  // nullptr: stacks by frame pointers
  std::optional<TaskSource> tasks_;
  std::optional<CpuSource> cpu_;
  std::optional<GpuSource> gpu_;
  std::optional<ProbeSource> probes_;  // the user's, and for launches when nothing is injected
};

}  // namespace xpu
