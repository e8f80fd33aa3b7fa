// Which track of a trace shows what. Processes and threads keep their numbers; everything else
// (a second process with a pid, GPUs, streams, samples) gets numbers that no pid can have. Slices
// are given in order of start, so that those that overlap get tracks of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/views/timeline/trace_sink.h"

namespace xpu {

// Slices of one track must not overlap without nesting: viewers drop or misdraw those that do. What
// does not fit goes to a further lane. All are given in order of start.
//
// Lanes whose slices follow one another.
class TraceLanes {
 public:
  // The first lane that is free from start_ns on; end_ns is not before it.
  size_t Place(uint64_t start_ns, uint64_t end_ns);

 private:
  template <typename Value>
  using MinQueue = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

  MinQueue<std::pair<uint64_t, size_t>> busy_;  // until when, lane
  MinQueue<size_t> free_;
};

// One lane whose slices may nest.
class NestingLane {
 public:
  // False: it overlaps a slice that is there already, and is not placed.
  bool Place(uint64_t start_ns, uint64_t end_ns);

 private:
  std::vector<uint64_t> ends_;  // of the slices around the next one, outermost first
};

class TraceTracks {
 public:
  // Names each track when it is first asked for.
  TraceTracks(const Analysis& analysis, TraceSink& sink);

  // The calls of a thread. They nest, where the capture is not damaged.
  TraceTrack Calls(const Owner& owner, uint64_t start_ns, uint64_t end_ns);
  TraceTrack Samples(const Owner& owner);
  // Whether the thread runs, is ready to, or waits.
  TraceTrack States(const Owner& owner);
  // The track of samples of an event that does not count time.
  TraceTrack Moments(const Owner& owner, std::string_view event);
  // Itself, for what has no duration.
  TraceTrack ThreadOf(const Owner& owner) { return FindThread(owner).track; }
  // Ranges that a thread pushed, or (owner.tid 0) that a process started.
  TraceTrack Ranges(const Owner& owner, uint64_t start_ns, uint64_t end_ns);
  // The steps of a process, which its thread launches.
  TraceTrack Steps(const Owner& owner);
  // The collectives of a rank of a job.
  TraceTrack Collectives(const JobRank& rank, uint64_t start_ns, uint64_t end_ns);
  // The path that decides how long they take.
  TraceTrack Critical(const Owner& owner);
  // The track of what the driver and CUPTI do for themselves in a process.
  TraceTrack Overheads(ProcessId process, uint64_t start_ns, uint64_t end_ns);
  // The track of what belongs to no process: pauses of the recording.
  TraceTrack Recording();
  // Work on a stream of a GPU, or a wait for some.
  TraceTrack Work(const GpuWork& work);
  // The group of a GPU as the report numbers it, for its counters.
  uint32_t Gpu(uint32_t number);

 private:
  // Lanes of the same kind; each gets its track when it is first used.
  struct Lanes {
    uint32_t pid = 0;
    std::string title;
    uint64_t sort_index = 0;
    TraceLanes lanes;
    std::vector<TraceTrack> tracks;  // by lane
  };
  // Slices that nest.
  struct Nest {
    TraceTrack track;
    NestingLane lane;
    Lanes crossing;  // for those that overlap others without nesting
  };
  using StreamKey = std::tuple<InstanceId, uint32_t, uint64_t>;  // GPU, stream

  TraceTrack InLane(Lanes& lanes, uint64_t start_ns, uint64_t end_ns);
  TraceTrack InNest(Nest& nest, uint64_t start_ns, uint64_t end_ns);
  Nest MakeNest(TraceTrack track, TraceTrackKind kind, const std::string& title,
                uint64_t sort_index);
  Nest MakeThread(const Owner& owner);
  Nest& FindThread(const Owner& owner);
  Nest MakeRanges(const Owner& owner);
  // Makes a row for `what` of the thread; `row` is its place among the rows of the thread.
  TraceTrack MakeRow(const Owner& owner, std::string_view what, uint64_t row);
  uint64_t StreamOf(const GpuWork& work) const;
  Lanes MakeStream(const GpuWork& work);
  uint32_t Pid(ProcessId process);
  std::string ProcessTitle(ProcessId process) const;
  std::string ThreadTitle(const Owner& owner) const;

  const Analysis& analysis_;
  TraceSink& sink_;
  // Linux has no pids above 2^22. All of ours differ, because viewers take a thread id for one
  // thread of the whole trace.
  uint32_t next_id_ = (uint32_t{1} << 22) + 1;
  std::map<ProcessId, uint32_t> pids_;
  std::unordered_set<uint32_t> real_pids_used_;
  std::unordered_set<uint32_t> real_tids_used_;
  std::map<ThreadKey, Nest> threads_;
  std::map<ThreadKey, Nest> ranges_;
  std::map<ThreadKey, TraceTrack> samples_;
  std::map<ThreadKey, TraceTrack> states_;
  std::map<std::pair<ThreadKey, std::string>, TraceTrack> moments_;  // by event
  std::map<ProcessId, Lanes> overheads_;
  std::map<InstanceId, Lanes> collectives_;
  TraceTrack recording_;                            // tid 0: not named yet
  std::unordered_map<uint32_t, uint32_t> gpus_;     // by number
  std::map<uint32_t, std::set<InstanceId>> users_;  // of each GPU
  std::map<StreamKey, Lanes> streams_;
};

}  // namespace xpu
