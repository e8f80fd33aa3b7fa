// The edges of a ProgramGraph that connect threads and streams.
#include <algorithm>
#include <queue>
#include <tuple>

#include "report/base/median.h"
#include "report/base/sort_runs.h"
#include "report/critical_path/program_graph.h"

namespace xpu {

void ProgramGraph::OrderCalls() {
  for (uint32_t place = 0; place < launches_.size(); ++place) {
    const Launch& launch = launches_[place];
    if (launch.end_ns <= launch.start_ns) continue;
    if (!part_.Has(launch.start_ns, launch.end_ns)) continue;
    const std::optional<uint32_t> lane = LaneOf(launch.owner().thread());
    if (lane) build_->calls[launch.process].push_back({launch.end_ns, *lane, place});
  }
  for (auto& [process, calls] : build_->calls) {
    SortRuns(calls, [](const Call& a, const Call& b) {
      return std::tuple(a.end_ns, a.launch) < std::tuple(b.end_ns, b.launch);
    });
  }
}

// Which lies in that time as a whole.
std::optional<uint32_t> ProgramGraph::LastCallOfOther(uint32_t lane, uint64_t from_ns,
                                                      uint64_t to_ns) const {
  constexpr int kMostCalls = 8;
  const auto found = build_->calls.find(lanes_[lane].owner.process);
  if (found == build_->calls.end()) return std::nullopt;
  const std::vector<Call>& calls = found->second;
  auto at = std::upper_bound(calls.begin(), calls.end(), to_ns,
                             [](uint64_t ns, const Call& call) { return ns < call.end_ns; });
  for (int i = 0; i < kMostCalls && at != calls.begin(); ++i) {
    --at;
    if (at->end_ns <= from_ns) break;
    if (at->lane != lane && launches_[at->launch].start_ns >= from_ns) return at->launch;
  }
  return std::nullopt;
}

// The rest of the time after the call of the other thread this one is assumed to run.
void ProgramGraph::MakeHandOvers() {
  for (const HandOver& hand_over : build_->hand_overs) {
    if (build_->call_end[hand_over.launch] == kNone) continue;
    graph_.AddActivity({.from = build_->call_end[hand_over.launch],
                        .to = hand_over.node,
                        .index = hand_over.lane,
                        .kind = EdgeKind::kRunning,
                        .is_assumed = true});
  }
}

// From the node at which a call could start its work on a stream that has nothing to do, to the
// start: the median.
uint64_t ProgramGraph::LaunchLatency() const {
  std::vector<uint64_t> latencies;
  for (const GpuStream& stream : build_->streams.all()) {
    for (size_t i = 0; i < stream.work.size(); ++i) {
      const GpuWork& work = work_[stream.work[i]];
      if (work.launch == GpuWork::kNoLaunch || build_->launch_point[work.launch] == kNone) continue;
      const uint64_t point_ns = graph_.TimeOf(build_->launch_point[work.launch]);
      if (i > 0 && stream.ended_ns[i - 1] > point_ns) continue;
      latencies.push_back(work.start_ns - std::min(work.start_ns, point_ns));
    }
  }
  return latencies.empty() ? 0 : MedianOf(latencies);
}

void ProgramGraph::MakeStreams() {
  for (const GpuStream& stream : build_->streams.all()) {
    for (const uint32_t place : stream.work) {
      build_->work_start[place] = graph_.AddNode(work_[place].start_ns);
      build_->work_end[place] = graph_.AddNode(work_[place].end_ns);
    }
  }
  const uint64_t latency_ns = LaunchLatency();
  for (const GpuStream& stream : build_->streams.all()) MakeStream(stream, latency_ns);
}

// Branches of a graph that is recorded node by node run at one time on one stream: what ended last
// before a piece of work is what that waited for.
void ProgramGraph::MakeStream(const GpuStream& stream, uint64_t latency_ns) {
  using End = std::pair<uint64_t, uint32_t>;  // and the work
  std::priority_queue<End, std::vector<End>, std::greater<>> running;
  uint32_t last = kNone;
  for (const uint32_t place : stream.work) {
    const GpuWork& work = work_[place];
    const EdgeKind kind = work.kind == WorkKind::kKernel  ? EdgeKind::kKernel
                          : work.kind == WorkKind::kGraph ? EdgeKind::kGraph
                                                          : EdgeKind::kMemory;
    graph_.AddActivity({.from = build_->work_start[place],
                        .to = build_->work_end[place],
                        .index = place,
                        .kind = kind});
    while (!running.empty() && running.top().first <= work.start_ns) {
      last = running.top().second;
      running.pop();
    }
    running.emplace(work.end_ns, place);
    if (last != kNone) {
      graph_.AddDependency({.from = build_->work_end[last],
                            .to = build_->work_start[place],
                            .index = place,
                            .kind = EdgeKind::kQueue});
    }
    if (work.launch == GpuWork::kNoLaunch || build_->launch_point[work.launch] == kNone) continue;
    graph_.AddDependency({.from = build_->launch_point[work.launch],
                          .to = build_->work_start[place],
                          .ns = latency_ns,
                          .index = place,
                          .kind = EdgeKind::kLaunch});
  }
}

// Which work an event stands for is not recorded. It is assumed to be the last that was launched on
// another stream before the call that waits, and that ended before the work that waited began.
void ProgramGraph::MakeStreamWaits() {
  for (const GpuWork& wait : work_) {
    if (wait.launch == GpuWork::kNoLaunch) continue;
    if (!IsStreamWait(analysis_.model.events, wait)) continue;
    const uint64_t call_ns = launches_[wait.launch].start_ns;
    if (!part_.Has(call_ns, call_ns)) continue;
    const GpuStream* stream = build_->streams.Find(wait.instance, wait.stream_id);
    if (stream == nullptr) continue;
    const auto next =
        std::upper_bound(stream->launched_ns.begin(), stream->launched_ns.end(), call_ns);
    if (next == stream->launched_ns.end()) continue;
    const uint32_t waits = stream->work[static_cast<size_t>(next - stream->launched_ns.begin())];
    std::optional<uint32_t> last;
    for (const GpuStream& other : build_->streams.Of(wait.instance)) {
      if (&other == stream) continue;
      const std::optional<uint32_t> of = other.LastOf(call_ns, work_[waits].start_ns);
      if (of && (!last || work_[*of].end_ns > work_[*last].end_ns)) last = of;
    }
    if (!last) continue;
    graph_.AddDependency({.from = build_->work_end[*last],
                          .to = build_->work_start[waits],
                          .index = waits,
                          .kind = EdgeKind::kStreamWait,
                          .is_assumed = true});
  }
}

void ProgramGraph::MakeGpuWaits() {
  for (uint32_t place = 0; place < launches_.size(); ++place) {
    const GpuWait& wait = build_->gpu_waits[place];
    if (wait.work == GpuWait::kNothing || build_->call_end[place] == kNone) continue;
    graph_.AddDependency({.from = build_->work_end[wait.work],
                          .to = build_->call_end[place],
                          .index = place,
                          .kind = EdgeKind::kGpuWait,
                          .is_assumed = wait.is_assumed});
  }
}

void ProgramGraph::MakeWakeUps() {
  for (uint32_t place = 0; place < build_->ready.size(); ++place) {
    if (build_->ready[place] == kNone || build_->waker[place] == kNone) continue;
    if (build_->waking[place] != Waking::kUsual) continue;
    graph_.AddDependency({.from = build_->waker[place],
                          .to = build_->ready[place],
                          .index = place,
                          .kind = EdgeKind::kWakeUp});
  }
}

}  // namespace xpu
