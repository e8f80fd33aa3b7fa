// Attaches to processes on threads of its own, several at once: each takes milliseconds, some a few
// seconds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/attach/attach.h"

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
  // Gives up what is under way.
  ~AttachThreads();

  void Request(AttachTarget target);
  std::vector<Finished> TakeFinished();
  // Readable while TakeFinished has something to give.
  int fd() const { return event_.get(); }

 private:
  static constexpr size_t kMost = 8;

  void Run();

  UniqueFd event_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;  // of the three below
  std::deque<AttachTarget> wanted_;
  std::vector<Finished> finished_;
  size_t idle_ = 0;  // threads that wait for work
  std::condition_variable has_work_;
  std::vector<std::thread> threads_;  // none until something is wanted
};

}  // namespace xpu
