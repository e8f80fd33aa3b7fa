// Which running processes the injected library is loaded into: those of -p that have mapped the
// CUDA driver, or with -a --attach all that use it, now or later, and the programs that they start.
//
// The processes themselves are handled on threads of its own (record/attach/); this class decides
// when, hands over the connection to the library, and reports what could not be done. A process
// that has mapped the driver may never use CUDA: monitors only look (NVML), data loaders have the
// driver from their parent. It is left alone until it initializes CUDA, which works in a child only
// if its parent had not. Between the windows of a recording the library is in none of them; those
// that can be attached to are attached to again for the next one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/attach/attach_threads.h"
#include "record/gpu/cuda_opens.h"
#include "record/gpu/inject_server.h"
#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

class AttachedProcesses : public ProcessListener {
 public:
  // `what`: for each process, without its pid. `are_named`: by the user, so that they need not use
  // CUDA yet. Listens to `processes`; both outlive this.
  AttachedProcesses(ProcessTable& processes, InjectServer& server, AttachTarget what,
                    bool are_named);

  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override { OnEnd(pid); }
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override;

  // A window ends: processes that load the driver now are attached to at the next one.
  void Pause() { is_paused_ = true; }
  // The next window comes: all are attached to again.
  void Resume();

  // Takes what has ended: connections go to the server, failures are counted.
  void Update(EventSink& sink);
  // At the end of the recording: gives up those that still wait, and counts them. Processes that
  // were recorded before lose nothing if the window that they were attached to for never began.
  void Finish(EventSink& sink, bool is_between_windows);
  // An attach is under way, and has been for less than a second: others may never end.
  bool IsBusy() const;
  // Readable when Update has something to take.
  int fd() const { return threads_.fd(); }
  // For the user, once: what could not be recorded, with hints; and for -v, how it went.
  std::string TakeFailures() { return std::exchange(failures_, {}); }
  std::string TakeNews() { return std::exchange(news_, {}); }

 private:
  void Want(uint32_t pid);
  void Await(uint32_t pid, uint32_t parent_pid);
  void Forget(uint32_t pid);
  void Plan(uint32_t pid, uint64_t due_ns);
  void CheckIdle();
  void RequestWanted();
  void TakeFinished(EventSink& sink);
  void TakeFailure(EventSink& sink, uint32_t pid, const Error& error);
  static void CountEnded(EventSink& sink, uint32_t pid);

  const ProcessTable& processes_;
  InjectServer& server_;
  const AttachTarget what_;
  const bool are_named_;
  CudaOpens opens_;
  struct Known {
    bool may_be_attached_to = true;
    bool has_failed = false;  // which was reported
  };
  std::map<uint32_t, Known> known_;  // processes that have the driver
  struct Idle {
    uint32_t parent_pid = 0;  // from which it has the driver
    bool is_watched = false;  // the kernel tells when it opens a device of CUDA
    bool is_checked = false;
    uint64_t opened_ns = 0;  // such a device, last
    uint64_t due_ns = 0;     // to be checked
  };
  std::map<uint32_t, Idle> idle_;  // of them, those that have not initialized CUDA
  // When to check which of them. Entries whose time is not the process's due_ns are out of date.
  std::multimap<uint64_t, uint32_t> plan_;
  std::set<uint32_t> wanted_;  // of those known, not asked for yet
  struct UnderWay {
    uint64_t since_ns = 0;
    bool is_forgotten = false;  // the process has ended or become another program
    bool has_failed = false;    // as Known, at that time
  };
  std::map<uint32_t, UnderWay> under_way_;
  std::set<uint32_t> reached_;   // attached to once, be it that they have ended since
  std::vector<uint32_t> ended_;  // wanted ones, to be counted
  bool is_paused_ = false;
  bool was_cut_off_ = false;  // the recording ended before its next window began
  std::string failures_;
  std::string news_;
  AttachThreads threads_;  // end before what they report to
};

}  // namespace xpu
