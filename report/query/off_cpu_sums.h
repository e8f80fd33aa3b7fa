// Sums over the times in which threads did not run: by what they waited for, by who woke them, by
// lock; and how threads spent their time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/query/readable_paths.h"
#include "report/query/statistics.h"

namespace xpu {

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
// Those that could run the longest first.
std::vector<ThreadStates> FindThreadStates(const Analysis& analysis);

// Threads of which each waits for a lock that the next one holds, and the last for one of the
// first.
using Deadlock = std::vector<const Owned<OffCpuWait>*>;
std::vector<Deadlock> FindDeadlocks(const Analysis& analysis);

}  // namespace xpu
