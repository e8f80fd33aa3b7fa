// Attaches to processes on threads of its own, several at once, in fair turns (attach_turns.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/attach/attach_turns.h"

namespace xpu {

class AttachThreads {
 public:
  struct Finished {
    pid_t pid = 0;
    Result<Attached> result;
  };

  AttachThreads();
  AttachThreads(const AttachThreads&) = delete;
  AttachThreads& operator=(const AttachThreads&) = delete;
  ~AttachThreads() { Join(); }

  // One at a time for each process.
  void Request(AttachTarget target);
  std::vector<Finished> TakeFinished();
  // Gives up the others, so that TakeFinished has all.
  void End();
  // Readable while TakeFinished has something to give.
  int fd() const { return event_.get(); }

 private:
  void Run();
  void Join();
  bool TakeTurn(std::unique_lock<std::mutex>& lock, uint64_t* next_ns);
  void Finish(pid_t pid, Result<Attached> result);

  UniqueFd event_;
  std::mutex mutex_;  // of what follows
  bool ends_ = false;
  AttachTurns attaches_;
  std::vector<Finished> finished_;
  size_t new_jobs_ = 0;  // that had no turn yet
  size_t idle_ = 0;      // threads that wait for work
  std::condition_variable has_work_;
  std::vector<std::thread> threads_;  // none until something is wanted
};

}  // namespace xpu
