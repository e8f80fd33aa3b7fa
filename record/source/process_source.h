// Records processes as the kernel reports them: tasks and mappings from perf's records, earlier
// ones from /proc; and requests the unwind tables of what they map.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/process/moved_code.h"
#include "record/process/task_records.h"
#include "record/process/watched_processes.h"
#include "record/source/source.h"

namespace xpu {

// Detects programs that gain privileges by their exec (setuid, setgid, file capabilities) or may
// not be read: the kernel removes them from the perf events at that moment. Only their records read
// exec, exit, without a mapping in between.
class PrivilegedPrograms : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this object.
  explicit PrivilegedPrograms(ProcessTable& processes) : processes_(processes) {
    processes.AddListener(this);
  }

  void OnEnd(uint32_t pid) override { Judge(pid, *processes_.Find(pid)); }
  // Counts those found since the last call.
  void CountLosses(EventSink& sink);
  // Also counts those that have just ended.
  void Finish(EventSink& sink);

 private:
  void Judge(uint32_t pid, const ProcessTable::Process& process);

  const ProcessTable& processes_;
  std::vector<std::pair<uint32_t, std::string>> found_;  // pid and name, not yet counted
};

// Processes that share their memory without being threads (clone with CLONE_VM): what one of them
// maps, all have, but the kernel reports it for that one alone.
class SharedMemory : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this object.
  explicit SharedMemory(ProcessTable& processes) : processes_(processes) {
    processes.AddListener(this);
  }

  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override { groups_.erase(pid); }
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override { groups_.erase(pid); }
  // Writes the mappings of the others since the last call.
  void Apply(EventSink& sink);

 private:
  struct Missing {
    uint32_t pid = 0;
    uint64_t start = 0;
    CodeMapping mapping;
  };

  ProcessTable& processes_;
  std::unordered_map<uint32_t, uint32_t> groups_;  // pid to the first pid of its group
  std::vector<Missing> missing_;
  bool is_writing_ = false;  // mappings that the others have already
};

class ProcessSource : public Source {
 public:
  // Determines the scope of the recording and opens unwinding, for the sources that are opened
  // later.
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);

  Status Arm() override;
  void Begin(EventSink& sink) override;
  void AfterExec(EventSink& sink) override;
  void Drain(EventSink& sink) override;
  void CountLosses(EventSink& sink) override;
  void Stop(EventSink& sink, bool may_go_on) override;
  std::vector<int> fds() const override;
  int DrainIntervalMs(uint64_t now_ns) const override;
  // True when all recorded running processes, and those that they started, have ended.
  bool IsOver() const override;

 private:
  explicit ProcessSource(SourceContext& context) : context_(context) {}
  void DrainTasks(EventSink& sink);
  void WaitForTables(EventSink& sink);
  Status WatchWithoutBpf();

  SourceContext& context_;
  uint64_t armed_ns_ = 0;
  std::unique_ptr<WatchedProcesses> watched_;  // nullptr: no -p, or without BPF
  std::vector<UniqueFd> running_;              // then of each -p, readable once it has ended
  MovedCode moved_{context_.processes};
  SharedMemory shared_{context_.processes};
  std::unique_ptr<TaskRecords> tasks_;              // nullptr: no perf events
  std::unique_ptr<PrivilegedPrograms> privileged_;  // of the program that xpu-record starts
};

}  // namespace xpu
