#include "report/critical_path/program_graph.h"

#include <algorithm>
#include <tuple>

#include "format/base/saturated.h"
#include "report/base/sort_runs.h"
#include "report/query/off_cpu_waits.h"

namespace xpu {
namespace {

// If a thread waits for another one for less than one in so many parts of its time, the two only
// meet at a lock. Else the path would follow a thread that sleeps for seconds, because it held a
// lock for a microsecond.
constexpr uint64_t kRarePart = 100;
// Without off-CPU time: a thread that runs for longer between two of its calls may have waited.
constexpr uint64_t kLongNs = 100'000;
// A longer stretch that holds calls of another thread is assumed to be a wait for that one.
constexpr uint64_t kHandOverNs = 50'000;

}  // namespace

ProgramGraph::ProgramGraph(const Analysis& analysis, const RecordingPart& part)
    : analysis_(analysis),
      launches_(analysis.correlation.launches),
      work_(analysis.correlation.work),
      part_(part),
      has_off_cpu_(!analysis.model.events.off_cpu_waits.empty()),
      build_(std::make_unique<Build>(analysis, part)) {
  const size_t waits = analysis.model.events.off_cpu_waits.size();
  build_->launch_point.assign(launches_.size(), kNone);
  build_->call_end.assign(launches_.size(), kNone);
  build_->work_start.assign(work_.size(), kNone);
  build_->work_end.assign(work_.size(), kNone);
  build_->ready.assign(waits, kNone);
  build_->waker.assign(waits, kNone);
  build_->waking.assign(waits, Waking::kUnknown);
  FindLanes();
  if (!has_off_cpu_) OrderCalls();
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) MakeLane(lane);
  MakeHandOvers();
  MakeStreams();
  MakeStreamWaits();
  MakeGpuWaits();
  MakeWakeUps();
  build_.reset();
  graph_.Finish();
}

uint32_t ProgramGraph::AddLane(const Owner& owner) {
  const auto [at, is_new] =
      lane_of_.try_emplace(owner.thread(), static_cast<uint32_t>(lanes_.size()));
  if (is_new) {
    lanes_.push_back({owner, {}});
    build_->cuts.emplace_back();
  }
  return at->second;
}

std::optional<uint32_t> ProgramGraph::LaneOf(const ThreadKey& thread) const {
  const auto found = lane_of_.find(thread);
  if (found == lane_of_.end()) return std::nullopt;
  return found->second;
}

std::optional<uint32_t> ProgramGraph::LastNode(uint32_t lane, uint64_t until_ns) const {
  const std::vector<uint32_t>& nodes = lanes_[lane].nodes;
  const auto after =
      std::upper_bound(nodes.begin(), nodes.end(), until_ns,
                       [&](uint64_t ns, uint32_t node) { return ns < graph_.TimeOf(node); });
  if (after == nodes.begin()) return std::nullopt;
  return *std::prev(after);
}

void ProgramGraph::FindLanes() {
  build_->first_work_ns.assign(launches_.size(), UINT64_MAX);
  for (const GpuWork& work : work_) {
    if (work.launch == GpuWork::kNoLaunch || !work.timed) continue;
    if (work.kind == WorkKind::kSynchronization) continue;
    build_->first_work_ns[work.launch] =
        std::min(build_->first_work_ns[work.launch], work.start_ns);
  }
  const size_t waits = analysis_.model.events.off_cpu_waits.size();
  for (uint32_t place = 0; place < waits; ++place) {
    AddLane(analysis_.model.events.off_cpu_waits[place].owner());
  }
  for (uint32_t place = 0; place < launches_.size(); ++place) AddCall(place);
  for (uint32_t place = 0; place < waits; ++place) AddWait(place);
  AddEnds();
  FindRareWakers();
}

void ProgramGraph::FindRareWakers() {
  const auto& waits = analysis_.model.events.off_cpu_waits;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> blocked_ns;  // by thread and waker
  const auto lanes_of = [&](const Owned<OffCpuWait>& wait) {
    return std::pair(*LaneOf(wait.owner().thread()), *LaneOf(WakerOf(analysis_, wait).thread()));
  };
  for (size_t place = 0; place < waits.size(); ++place) {
    if (build_->waking[place] != Waking::kUsual) continue;
    uint64_t& ns = blocked_ns[lanes_of(waits[place])];
    ns = AddSaturated(ns, TimesOf(waits[place]).blocked_ns);
  }
  std::vector<uint64_t> lane_ns;
  for (const HugePageVector<Cut>& cuts : build_->cuts) {
    const auto [first, last] = std::ranges::minmax_element(cuts, {}, &Cut::time_ns);
    lane_ns.push_back(cuts.empty() ? 0 : last->time_ns - first->time_ns);
  }
  for (size_t place = 0; place < waits.size(); ++place) {
    if (build_->waking[place] != Waking::kUsual) continue;
    const auto lanes = lanes_of(waits[place]);
    if (blocked_ns[lanes] < lane_ns[lanes.first] / kRarePart) build_->waking[place] = Waking::kRare;
  }
}

void ProgramGraph::AddCall(uint32_t place) {
  const Launch& launch = launches_[place];
  const bool is_captured = LaunchStatusOf(launch) == LaunchStatus::kCaptured;
  if (launch.tid == 0 || launch.end_ns < launch.start_ns) return;
  if (!part_.Has(launch.start_ns, launch.end_ns)) return;
  HugePageVector<Cut>& cuts = build_->cuts[AddLane(launch.owner())];
  const bool is_long = launch.end_ns > launch.start_ns;
  // In order of time as far as can be: less is left to sort.
  if (is_long) cuts.push_back({launch.start_ns, place, CutKind::kCallStart});
  if (!is_captured && build_->first_work_ns[place] != UINT64_MAX) {
    const uint64_t point_ns =
        std::clamp(build_->first_work_ns[place], launch.start_ns, launch.end_ns);
    cuts.push_back({point_ns, place, CutKind::kPoint});
  }
  if (is_long) cuts.push_back({launch.end_ns, place, CutKind::kCallEnd});
}

void ProgramGraph::AddWait(uint32_t place) {
  const Owned<OffCpuWait>& wait = analysis_.model.events.off_cpu_waits[place];
  const OffCpuTimes times = TimesOf(wait);
  const uint64_t ready_ns = wait.start_ns + times.blocked_ns;
  const uint64_t end_ns = ready_ns + times.runnable_ns;
  if (end_ns <= wait.start_ns || !part_.Has(wait.start_ns, end_ns)) return;
  HugePageVector<Cut>& cuts = build_->cuts[AddLane(wait.owner())];
  cuts.push_back({wait.start_ns, place, CutKind::kWaitStart});
  if (IsWait(wait.state) && times.blocked_ns > 0)
    cuts.push_back({ready_ns, place, CutKind::kReady});
  cuts.push_back({end_ns, place, CutKind::kWaitEnd});
  if (!IsWoken(wait)) return;
  const auto lane = LaneOf(WakerOf(analysis_, wait).thread());
  if (!lane) return;
  build_->cuts[*lane].push_back({ready_ns, place, CutKind::kWake});
  build_->waking[place] = Waking::kUsual;
}

bool ProgramGraph::IsWoken(const OffCpuWait& wait) const {
  return IsWait(wait.state) && wait.waker == OffCpuWaker::kThread && !wait.is_open &&
         wait.ready_ns > wait.start_ns && wait.ready_ns <= wait.end_ns;
}

// From where to where a thread was seen.
void ProgramGraph::AddEnds() {
  const auto add = [&](const Owner& owner) {
    if (!part_.Has(owner.time_ns, owner.time_ns)) return;
    if (const auto lane = LaneOf(owner.thread())) {
      build_->cuts[*lane].push_back({owner.time_ns, kNone, CutKind::kPoint});
    }
  };
  std::map<ThreadKey, Owner> last;
  for (const Owned<CpuSample>& sample : analysis_.model.events.cpu_samples) {
    const Owner owner = sample.owner();
    if (!part_.Has(owner.time_ns, owner.time_ns)) continue;
    if (owner.pid == owner.tid && lane_of_.empty()) AddLane(owner);
    const auto [at, is_new] = last.try_emplace(owner.thread());
    if (is_new) add(owner);
    at->second = owner;
  }
  for (const auto& [thread, owner] : last) add(owner);
  for (const Owned<OffCpuSum>& sum : analysis_.model.events.off_cpu_sums) add(sum.owner());
}

bool ProgramGraph::WaitsForGpu(const LaneState& state) const {
  if (state.call == kNone || state.is_working) return false;
  const GpuWait& wait = build_->gpu_waits[state.call];
  return wait.work != GpuWait::kNothing && work_[wait.work].end_ns > launches_[state.call].start_ns;
}

// The edge of a thread between two nodes: a wait takes precedence over the call around it.
Edge ProgramGraph::EdgeOf(const LaneState& state) const {
  if (WaitsForGpu(state)) {
    return {.index = state.call,
            .kind = EdgeKind::kBlocked,
            .is_assumed = build_->gpu_waits[state.call].is_assumed};
  }
  if (state.wait != kNone) {
    const OffCpuWait& wait = analysis_.model.events.off_cpu_waits[state.wait];
    if (state.is_ready || !IsWait(wait.state)) {
      return {.index = state.wait, .kind = EdgeKind::kRunnable};
    }
    const Waking waking = build_->waking[state.wait];
    if (waking == Waking::kUsual) return {.index = state.wait, .kind = EdgeKind::kBlocked};
    const bool is_known = waking == Waking::kRare || wait.waker == OffCpuWaker::kInterrupt;
    return {.index = state.wait, .kind = EdgeKind::kWait, .is_assumed = !is_known};
  }
  if (state.call != kNone) return {.index = state.call, .kind = EdgeKind::kCall};
  return {.index = state.lane, .kind = EdgeKind::kRunning};
}

uint32_t ProgramGraph::MakeNode(const LaneState& state, uint64_t time_ns) {
  std::vector<uint32_t>& nodes = lanes_[state.lane].nodes;
  if (!nodes.empty() && graph_.TimeOf(nodes.back()) == time_ns) return nodes.back();
  const uint32_t node = graph_.AddNode(time_ns);
  sites_.push_back({});
  if (!nodes.empty()) {
    Edge edge = EdgeOf(state);
    edge.from = nodes.back();
    edge.to = node;
    const uint64_t from_ns = graph_.TimeOf(edge.from);
    if (edge.kind == EdgeKind::kRunning && !has_off_cpu_) {
      const std::optional<uint32_t> other = time_ns - from_ns > kHandOverNs
                                                ? LastCallOfOther(state.lane, from_ns, time_ns)
                                                : std::nullopt;
      if (other) {
        edge.kind = EdgeKind::kBlocked;
        build_->hand_overs.push_back({*other, node, state.lane});
      }
      edge.is_assumed = other || time_ns - from_ns > kLongNs;
    }
    if (edge.kind == EdgeKind::kBlocked) {
      graph_.AddDependency(edge);
    } else {
      graph_.AddActivity(edge);
    }
  }
  nodes.push_back(node);
  return node;
}

void ProgramGraph::Apply(const Cut& cut, uint32_t node, bool is_hidden, LaneState& state) {
  const auto set_site = [&](Site::Kind kind) {
    if (!is_hidden) sites_[node] = {kind, cut.index};
  };
  switch (cut.kind) {
    case CutKind::kWaitStart:
      state.wait = cut.index;
      state.is_ready = false;
      return set_site(Site::Kind::kWait);
    case CutKind::kReady:
      if (state.wait == cut.index) state.is_ready = true;
      if (!is_hidden) build_->ready[cut.index] = node;
      return;
    case CutKind::kWaitEnd:
      if (state.wait == cut.index) state.wait = kNone;
      return set_site(Site::Kind::kWait);
    case CutKind::kCallStart:
      if (state.call != kNone) return;  // one within another
      state.call = cut.index;
      state.is_working = build_->first_work_ns[cut.index] != UINT64_MAX &&
                         !build_->gpu_waits[cut.index].is_full_queue;
      return set_site(Site::Kind::kLaunch);
    case CutKind::kCallEnd:
      if (state.call != cut.index) return;
      build_->call_end[cut.index] = node;
      state.call = kNone;
      return set_site(Site::Kind::kLaunch);
    case CutKind::kPoint:
      if (cut.index == kNone) return;
      build_->launch_point[cut.index] = node;
      if (state.call == cut.index) state.is_working = false;
      return set_site(Site::Kind::kLaunch);
    case CutKind::kWake:
      build_->waker[cut.index] = node;
      if (sites_[node].kind == Site::Kind::kNone) set_site(Site::Kind::kWaker);
      return;
  }
}

void ProgramGraph::MakeLane(uint32_t lane) {
  HugePageVector<Cut> cuts = std::move(build_->cuts[lane]);
  SortRuns(cuts, [](const Cut& a, const Cut& b) {
    return std::tuple(a.time_ns, a.kind, a.index) < std::tuple(b.time_ns, b.kind, b.index);
  });
  LaneState state{.lane = lane};
  for (const Cut& cut : cuts) {
    const bool is_of_wait = cut.kind == CutKind::kReady || cut.kind == CutKind::kWaitEnd ||
                            cut.kind == CutKind::kWaitStart;
    // While a call waits for the GPU it does not matter whether the thread sleeps or spins.
    const bool is_hidden = is_of_wait && WaitsForGpu(state);
    Apply(cut, is_hidden ? kNone : MakeNode(state, cut.time_ns), is_hidden, state);
  }
}

}  // namespace xpu
