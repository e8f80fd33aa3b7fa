// Attaches to processes on threads of its own, several at once. Fair: whoever has many processes
// that cannot be attached to, or not for a long time, holds up nobody else.
//
// A process has a turn at once, and further ones when it is ready for them. A user may have as many
// threads at work as remain free for others, and so may each cgroup of the user's share; among
// those that may, the one goes first that has the fewest, then the one that waits for longest.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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
  ~AttachThreads() { Join(); }

  // One at a time for each process.
  void Request(AttachTarget target);
  std::vector<Finished> TakeFinished();
  // Gives up the others, so that TakeFinished has all.
  void End();
  // Readable while TakeFinished has something to give.
  int fd() const { return event_.get(); }

 private:
  static constexpr size_t kMost = 32;

  struct Job {
    AttachTarget target;
    std::unique_ptr<Attaching> attaching;  // from its first turn on
  };
  struct Share {
    size_t at_work = 0;        // threads
    uint64_t last_served = 0;  // the turn's number
    bool operator<(const Share& other) const {
      return at_work != other.at_work ? at_work < other.at_work : last_served < other.last_served;
    }
  };
  struct Cgroup : Share {
    std::multimap<uint64_t, Job> waiting;  // by when it is to go on; 0: it had no turn yet
  };
  struct User : Share {
    std::map<std::string, Cgroup> cgroups;
  };

  void Run();
  void Join();
  bool TakeTurn(std::unique_lock<std::mutex>& lock, uint64_t* next_ns);
  void Finish(pid_t pid, Result<Attached> result);

  UniqueFd event_;
  std::mutex mutex_;  // of what follows
  bool ends_ = false;
  std::map<uint32_t, User> users_;  // entries stay: there are few
  std::vector<Finished> finished_;
  size_t new_jobs_ = 0;  // that had no turn yet
  size_t idle_ = 0;      // threads that wait for work
  size_t at_work_ = 0;
  uint64_t turns_ = 0;
  std::condition_variable has_work_;
  std::vector<std::thread> threads_;  // none until something is wanted
};

}  // namespace xpu
