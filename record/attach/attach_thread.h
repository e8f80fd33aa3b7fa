// Attaches to processes one after another, on a thread of its own: each takes milliseconds, some a
// few seconds.
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

class AttachThread {
 public:
  struct Finished {
    pid_t pid = 0;
    Result<Attached> result;
  };

  AttachThread();
  AttachThread(const AttachThread&) = delete;
  AttachThread& operator=(const AttachThread&) = delete;
  // Gives up what is under way.
  ~AttachThread();

  void Request(AttachTarget target);
  std::vector<Finished> TakeFinished();
  // Readable while TakeFinished has something to give.
  int fd() const { return event_.get(); }

 private:
  void Run();

  UniqueFd event_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;  // of the two below
  std::deque<AttachTarget> wanted_;
  std::vector<Finished> finished_;
  std::condition_variable has_work_;
  std::thread thread_;  // none until something is wanted
};

}  // namespace xpu
