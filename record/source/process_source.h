// The processes of a recording, as the kernel reports them: tasks and mappings from perf's records,
// what ran before from /proc; and the unwind tables of what they map.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "record/process/task_records.h"
#include "record/process/watched_processes.h"
#include "record/source/source.h"

namespace xpu {

// Programs that gain privileges by their exec (setuid, setgid, file capabilities) or may not be
// read: the kernel takes them out of the perf events at that moment. Their records then read exec,
// exit, with no mapping between them, which no other program's do.
class PrivilegedPrograms : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this.
  explicit PrivilegedPrograms(ProcessTable& processes) : processes_(processes) {
    processes.AddListener(this);
  }

  void OnEnd(uint32_t pid) override { Judge(pid, *processes_.Find(pid)); }
  // Counts those that were found since the last call.
  void CountLosses(EventSink& sink);
  // Those too that ended a moment ago.
  void Finish(EventSink& sink);

 private:
  void Judge(uint32_t pid, const ProcessTable::Process& process);

  const ProcessTable& processes_;
  std::vector<std::pair<uint32_t, std::string>> found_;  // by pid and name, not counted yet
};

class ProcessSource : public Source {
 public:
  // Decides the scope of the recording and opens the unwinding of stacks, for the sources that are
  // opened after it.
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);

  Status Arm() override;
  void Begin(EventSink& sink) override;
  void AfterExec(EventSink& sink) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  void Stop(EventSink& sink, bool may_go_on) override;
  std::vector<int> fds() const override;
  int DrainIntervalMs(uint64_t now_ns) const override;
  // All of the processes that ran already, and what they started.
  bool IsOver() const override { return watched_ != nullptr && !watched_->AnyRuns(); }

 private:
  explicit ProcessSource(SourceContext& context) : context_(context) {}
  void DrainTasks(EventSink& sink);
  void WaitForTables(EventSink& sink);

  SourceContext& context_;
  uint64_t armed_ns_ = 0;
  std::unique_ptr<WatchedProcesses> watched_;       // nullptr: not of processes that run already
  std::unique_ptr<TaskRecords> tasks_;              // nullptr: no perf events
  std::unique_ptr<PrivilegedPrograms> privileged_;  // of a program that we start
};

}  // namespace xpu
