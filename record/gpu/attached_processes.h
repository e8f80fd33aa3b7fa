// Which running processes the injected library is loaded into: those of -p, or with -a --attach
// all, that have mapped the CUDA driver, now or later, and the programs that they start.
//
// The processes themselves are handled on a thread of its own (record/attach/); this class decides
// when, hands over the connection to the library, and reports what could not be done. A child that
// was forked from a process with the driver is left alone until it initializes CUDA itself, which
// works only if its parent had not: the data loaders of a training job never do. Between the
// windows of a recording the library is in none of them; those that can be attached to are attached
// to again for the next one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/attach/attach_threads.h"
#include "record/gpu/inject_server.h"
#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

class AttachedProcesses : public ProcessListener {
 public:
  // `what`: for each process, without its pid. `takes_forked`: also children that had the driver
  // before the recording, because the user named them. Listens to `processes`; both outlive this.
  AttachedProcesses(ProcessTable& processes, InjectServer& server, AttachTarget what,
                    bool takes_forked);

  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override { Forget(pid); }
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override;

  // A window ends: processes that load the driver now are attached to at the next one.
  void Pause() { is_paused_ = true; }
  // The next window comes: all are attached to again.
  void Resume();

  // Takes what has ended: connections go to the server, failures are counted.
  void Update(EventSink& sink);
  // An attach is under way.
  bool IsBusy() const { return under_way_ > 0 || !wanted_.empty(); }
  // Readable when Update has something to take.
  int fd() const { return threads_.fd(); }
  // For the user, once: what could not be recorded, with hints; and for -v, how it went.
  std::string TakeFailures() { return std::exchange(failures_, {}); }
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  void Want(uint32_t pid);
  void AddForked(uint32_t parent_pid, uint32_t pid);
  void Forget(uint32_t pid);
  void CheckForked(uint64_t now_ns);
  void RequestWanted();
  static void CountEnded(EventSink& sink, uint32_t pid);

  const ProcessTable& processes_;
  InjectServer& server_;
  const AttachTarget what_;
  const bool takes_forked_;
  struct Known {
    bool may_be_attached_to = true;
    bool has_failed = false;  // which was reported
  };
  std::map<uint32_t, Known> known_;  // processes that have the driver
  // Of them, the children that have it from their parent and have not initialized CUDA. The value
  // is the parent until the child is checked, then 0.
  std::map<uint32_t, uint32_t> forked_;
  uint64_t next_check_ns_ = 0;
  std::set<uint32_t> wanted_;    // of them, not asked for yet
  std::set<uint32_t> reached_;   // attached to once, be it that they have ended since
  std::vector<uint32_t> ended_;  // wanted ones, to be counted
  bool is_paused_ = false;
  uint32_t under_way_ = 0;
  std::string failures_;
  std::string news_;
  AttachThreads threads_;  // end before what they report to
};

}  // namespace xpu
