// How threads spent their time: how long they ran, which context switches say exactly, what they
// did then, which CPU samples say, when they waited for the GPU; and sums over the times in which
// they did not run: by what they waited for, by what woke them, by lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"
#include "report/base/intervals.h"
#include "report/query/readable_paths.h"
#include "report/query/statistics.h"

namespace xpu {

// The synchronization calls of each thread: while it is in one, it waits for the GPU, whether it
// runs or not.
class SynchronizationCalls {
 public:
  explicit SynchronizationCalls(const Analysis& analysis);

  bool IsInOne(const Owner& owner, uint64_t time_ns) const;

 private:
  std::map<ThreadKey, std::vector<Interval>> threads_;  // by time; they do not overlap
};

// Why threads waited.
class WaitReasons {
 public:
  explicit WaitReasons(const Analysis& analysis) : gpu_calls_(analysis) {}

  // In a synchronization call "GPU (futex)", otherwise WaitName.
  std::string Of(const Owned<OffCpuWait>& wait) const;

 private:
  const SynchronizationCalls gpu_calls_;
};

// The running time of one thread.
struct RunningTime {
  struct Part {
    uint32_t sample = 0;  // in LoadedEvents::cpu_samples
    uint64_t ns = 0;
  };
  Owner owner;
  uint64_t total_ns = 0;
  // They add up to the total. None: the thread has no samples.
  std::vector<Part> parts;
};

// Divides the running time of each thread over its samples. Where a filter leaves out the sums,
// and of threads without any, each sample stands for its own weight.
std::vector<RunningTime> FindRunningTimes(const Analysis& analysis);

// A wait of a kernel thread, which usually waits for work.
bool IsOfKernelThread(const Analysis& analysis, const OffCpuWait& wait);

// The times of one reason at one path.
struct OffCpuReason {
  Statistics times;  // the reason is its name
  PathId path;       // as ReadablePaths has it
  uint64_t runnable_ns = 0;
  bool is_sum = false;  // of short times, of which only total and count are known
};
// All lists of times: the longest total first.
std::vector<OffCpuReason> OffCpuReasons(Analysis& analysis, CallPaths& paths);

// The waits of one thread name that another one ended. The times are those until the wake-up.
struct WakeUps {
  Statistics times;   // without a name
  std::string waker;  // a name of threads, or [interrupt]
  std::string woken;
  std::string reason;
  PathId path;  // of the waker, as ReadablePaths has it
};
std::vector<WakeUps> FindWakeUps(Analysis& analysis, CallPaths& paths);

// The waits for one futex of one process.
struct LockWaits {
  Statistics times;  // without a name
  ProcessId process;
  uint32_t pid = 0;
  uint64_t address = 0;
  uint64_t threads = 0;   // that waited
  uint64_t open = 0;      // waits that had not ended
  uint32_t holder = 0;    // the thread that held it at the end; 0: not known
  std::string releasers;  // the threads that ended most waits: "worker/12 x3, worker/13"
  PathId path;            // where most of the time was waited
};
std::vector<LockWaits> FindLockWaits(Analysis& analysis, CallPaths& paths);

// How a thread spent its time.
struct ThreadStates {
  Owner owner;
  uint64_t running_ns = 0;
  uint64_t waiting_ns = 0;
  uint64_t runnable_ns = 0;

  uint64_t total_ns() const;
};
// The threads that could run the longest come first.
std::vector<ThreadStates> FindThreadStates(const Analysis& analysis);

// Threads of which each waits for a lock that the next one holds, and the last for one of the
// first.
using Deadlock = std::vector<const Owned<OffCpuWait>*>;
std::vector<Deadlock> FindDeadlocks(const Analysis& analysis);

}  // namespace xpu
