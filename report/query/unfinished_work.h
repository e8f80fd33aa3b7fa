// GPU work that the capture does not show to have ended: what faulted, what hangs, what was pending
// when its program or the recording ended.
//
// The work of a stream ends in the order of its launches, so the stream stopped at its first
// operation without an end. Operations without times that ended nevertheless come first: other work
// of their stream ended later, or a synchronization that succeeded waited for them. After a fault,
// CUPTI may have lost the times of work that had ended: GpuProcess::times_on_host rules that out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"

namespace xpu {

struct UnfinishedStream {
  uint32_t context_id = 0;
  uint64_t ended_ns = 0;            // when its last operation that has times ended; 0: it has none
  std::vector<uint32_t> work = {};  // in Correlation::work: without an end, the oldest launch first
  // Its kernels overlap (programmatic dependent launch): the oldest may have let others begin.
  bool overlaps = false;
  // The first of `work` that may have faulted or may never end: the oldest, all nodes of its
  // replay, or all where kernels overlap or ends are not known.
  size_t candidates = 0;
};

// Launches with the same stack.
struct LaunchGroup {
  uint32_t first = GpuWork::kNoLaunch;  // in Correlation::launches
  uint64_t count = 0;
};

// One instance of the injected library, with work that did not end.
struct UnfinishedProcess {
  InstanceId instance;
  uint32_t failed_call = GpuWork::kNoLaunch;  // the first call that returned a fault
  uint32_t open_call = GpuWork::kNoLaunch;    // the last call of a thread, which did not return
  uint64_t xid = 0;        // the last error of a GPU that has the work; 0: the driver reported none
  uint64_t until_ns = 0;   // when the fault was reported, the program ended, or the recording
  bool has_ended = false;  // the program, before the recording
  uint64_t ended_ns = 0;   // when the last of its operations that have times ended
  uint64_t returned_ns = 0;  // when its last call returned
  // Work without times had not ended. Otherwise some of it may have.
  bool knows_ends = false;
  std::vector<UnfinishedStream> streams;  // the oldest launch first
  // Launches whose records were not delivered and that no synchronization waited for; the oldest
  // first.
  std::vector<LaunchGroup> undelivered;

  bool has_faulted() const { return failed_call != GpuWork::kNoLaunch; }
};

// Finds the processes with such work: those that faulted in the order of their faults, then the
// others in the order of their ends. `analysis` is taken as a whole, whatever it shows. Processes
// of which it shows no launch are left out, unless a time range may be why it shows none.
std::vector<UnfinishedProcess> FindUnfinished(const Analysis& analysis);

// For how long the launch had been pending in the end.
uint64_t PendingNs(const Analysis& analysis, const UnfinishedProcess& process, uint32_t launch);

// Work that has been pending for less may have ended: the library asks CUPTI for records several
// times a second, and at least every 1.6 s while CUPTI keeps some back.
inline constexpr uint64_t kDeliveredAfterNs = 2'000'000'000;

// Whether the work says something about the program: it failed, or nothing that could be ahead of
// it had ended for so long that it is stuck. The records of a program that was killed may lack work
// that had ended, and queues may be long.
bool IsStuck(const Analysis& analysis, const UnfinishedProcess& process);
// Whether a process that is shown has such work.
bool HasStuckWork(const Analysis& analysis);

// How many operations may be the one that faulted or that does not end. 1: it is the oldest one.
uint64_t CountCandidates(const UnfinishedProcess& process);

// The calls that made the nodes of executable graphs. Each question takes as long as its graph is
// large.
class GraphCreations {
 public:
  // `analysis` must outlive this.
  explicit GraphCreations(const Analysis& analysis);

  // Returns those of the graph of a replay, the oldest first.
  std::vector<LaunchGroup> Of(const GpuWork& replay) const;

 private:
  using Key = std::pair<InstanceId, uint32_t>;

  const Analysis& analysis_;
  std::map<Key, std::vector<uint64_t>> nodes_;  // their ids, by graph
  std::map<Key, uint32_t> calls_;               // in Correlation::launches, by correlation id
};

// ---- unfinished_text.cpp

// Names the GPU work that faulted, or that had been pending for long in the end, and the functions
// that launched it; where several operations may be the one, lists them. About the first process
// that has such work. Empty: none has.
std::string UnfinishedText(Analysis& analysis);

// Reports work that was launched before an attach and did not end: it has no records, because CUPTI
// begins when it has ended. Empty: there is none.
std::string EarlierWorkText(Analysis& analysis);

}  // namespace xpu
