// One call that makes the GPU work, and what became of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/model/compact_list.h"
#include "report/model/model.h"
#include "report/trace/api_names.h"
#include "report/trace/match.h"
#include "report/trace/tracks.h"

namespace xpu {

// The kinds of GPU work that calls start.
enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset, kGraph, kSynchronization };

// How far a stack may lie before its call, and fitted GPU times before their launch: more than any
// error of the clocks, less than any wrap of the ids (2^32 launches take hours).
inline constexpr uint64_t kToleranceNs = 1'000'000;

// One call that makes the GPU work: the call, its stack, or both.
struct Launch {
  InstanceId instance;
  uint64_t kernel = 0;    // ProbeHit::kernel
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint32_t correlation_id = 0;
  uint32_t callback_id = 0;
  StackId stack;
  StackId python_stack;      // LaunchStack::python_stack
  ProcessId process;         // with this pid, when the call began
  TrackId track;             // of its thread then
  uint32_t pid = 0;          // as the recorder sees it, 0: unknown
  uint32_t tid = 0;          // likewise
  uint32_t program_tid = 0;  // as the program sees it, 0: unknown
  int32_t return_value = 0;
  uint32_t graph_nodes = 0;  // nodes of CUDA graphs that it made
  uint32_t probe = 0;        // Probe::probe when nothing but a probe saw it: it has no id
  uint32_t work_count = 0;   // GPU records matched to it
  ApiDomain domain = ApiDomain::kDriver;
  ApiNameId name;  // of the call, as ApiNames has it
  ApiKind kind = ApiKind::kOther;
  uint8_t stack_flags = 0;
  MatchKind stack_match = MatchKind::kNone;
  bool has_call = false;  // else start_ns = end_ns = the time of the stack
  bool has_stack = false;

  Owner owner() const { return {process, pid, tid, start_ns, track}; }
};

template <SameEvent<Launch> T, typename Visit>
constexpr void VisitFields(T& launch, Visit&& visit) {
  visit("instance", launch.instance);
  visit("kernel", launch.kernel);
  visit("start_ns", launch.start_ns);
  visit("end_ns", launch.end_ns);
  visit("correlation_id", launch.correlation_id);
  visit("callback_id", launch.callback_id);
  visit("stack", launch.stack);
  visit("python_stack", launch.python_stack);
  visit("pid", launch.pid);
  visit("tid", launch.tid);
  visit("program_tid", launch.program_tid);
  visit("return_value", launch.return_value);
  visit("graph_nodes", launch.graph_nodes);
  visit("probe", launch.probe);
  visit("work_count", launch.work_count);
  visit("domain", launch.domain);
  visit("name", launch.name);
  visit("kind", launch.kind);
  visit("stack_flags", launch.stack_flags);
  visit("stack_match", launch.stack_match);
  visit("has_call", launch.has_call);
  visit("has_stack", launch.has_stack);
}

// The outcome of a launch.
enum class LaunchStatus : uint8_t {
  kNoLaunch,   // a call after which no kernel or graph record must come
  kMatched,    // a record came
  kProbed,     // recorded without GPU records
  kFailed,     // the call returned an error
  kCaptured,   // it went into a CUDA graph and started nothing
  kUnmatched,  // it owes a record
};
inline LaunchStatus LaunchStatusOf(const Launch& launch) {
  if (launch.kind == ApiKind::kOther) return LaunchStatus::kNoLaunch;
  if (launch.work_count > 0) return LaunchStatus::kMatched;
  if (launch.return_value != 0) return LaunchStatus::kFailed;
  if (launch.probe != 0) return LaunchStatus::kProbed;
  return launch.graph_nodes > 0 ? LaunchStatus::kCaptured : LaunchStatus::kUnmatched;
}
inline bool IsPending(const Launch& launch) {
  return LaunchStatusOf(launch) == LaunchStatus::kUnmatched;
}

// "cudaLaunchKernel"
inline const std::string& ApiNameOf(const ApiNames& names, const Launch& launch) {
  return names.Text(launch.name);
}

// One instance of the injected library.
struct CudaProcess {
  uint32_t pid = 0;            // as the recorder sees it, 0: unknown
  uint32_t namespace_pid = 0;  // as it sees itself
  bool has_work = false;       // GPU records came from it
};

// Launches, as many as calls, by place. Their tracks and how much work is matched to them are
// known only when all are there.
class LaunchList {
 public:
  LaunchList() = default;
  explicit LaunchList(std::span<const Launch> launches) {
    for (const Launch& launch : launches) push_back(launch);
  }

  size_t size() const { return launches_.size(); }
  bool empty() const { return launches_.empty(); }
  [[gnu::always_inline]] Launch operator[](size_t place) const {
    Launch launch = launches_[place];
    launch.work_count = place < work_counts_.size() ? work_counts_[place] : 0;
    return launch;
  }
  // One field but process, track and work_count, without the others: Get<&Launch::start_ns>(place).
  template <auto kField>
  [[gnu::always_inline]] auto Get(size_t place) const {
    static_assert(!IsSameMember<kField, &Launch::process>() &&
                  !IsSameMember<kField, &Launch::track>() &&
                  !IsSameMember<kField, &Launch::work_count>());
    return launches_.Get<kField>(place);
  }
  using Iterator = ValueIterator<LaunchList>;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  // Appends a launch that has no track and no work yet.
  void push_back(const Launch& launch) { launches_.push_back(launch); }
  // See CompactList::EditTemplates. Their own fields are those that `launches_` names.
  template <typename Edit>
  void EditTemplates(Edit&& edit) {
    launches_.EditTemplates(edit);
  }
  // See CompactList::FindTracks.
  void FindTracks(const Tracks& tracks) {
    launches_.FindTracks<&Launch::pid, &Launch::tid, &Launch::start_ns>(tracks);
  }
  // One more record is matched to the launch.
  void CountWork(size_t place) {
    if (work_counts_.empty()) work_counts_.resize(size());
    ++work_counts_[place];
  }

 private:
  CompactList<Launch, &Launch::start_ns, &Launch::end_ns, &Launch::correlation_id, &Launch::stack,
              &Launch::python_stack>
      launches_;
  std::vector<uint32_t, HugePageAllocator<uint32_t>> work_counts_;  // empty: no work is matched
};

}  // namespace xpu
