#include "report/critical_path/critical_path.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/sampled_events.h"
#include "report/query/gpu_idle.h"
#include "report/query/off_cpu_waits.h"

namespace xpu {
namespace {

// Without off-CPU time: where samples stand for less than this part of the time, the thread waited
// for the rest.
constexpr double kMostlySampled = 0.7;

bool IsOfGpu(EdgeKind kind) {
  return IsGpuWork(kind) || kind == EdgeKind::kLaunch || kind == EdgeKind::kQueue ||
         kind == EdgeKind::kStreamWait;
}

bool IsOfWait(EdgeKind kind) {
  return kind == EdgeKind::kWait || kind == EdgeKind::kRunnable || kind == EdgeKind::kWakeUp;
}

// The innermost path that nearly all of the shares are below.
PathId AroundNearlyAll(const CallTree& tree, const std::vector<CodeShare>& code) {
  constexpr double kNearlyAll = 0.9;
  std::map<PathId, double> below;
  for (const CodeShare& part : code) below[part.path] += part.share;
  // Parents come before their children.
  for (auto at = below.rbegin(); at != below.rend(); ++at) {
    if (const PathId parent = tree[at->first].parent) below[parent] += at->second;
  }
  PathId place;
  for (const auto& [path, share] : below) {
    if (tree[path].parent == place && share >= kNearlyAll) place = path;
  }
  return place;
}

}  // namespace

std::string_view EdgeKindName(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kRunning:
      return "CPU";
    case EdgeKind::kCall:
      return "CUDA call";
    case EdgeKind::kWait:
      return "wait";
    case EdgeKind::kRunnable:
      return "runnable";
    case EdgeKind::kBlocked:
      return "blocked";
    case EdgeKind::kWakeUp:
      return "wake-up";
    case EdgeKind::kKernel:
      return "kernel";
    case EdgeKind::kMemory:
      return "memory operation";
    case EdgeKind::kGraph:
      return "graph";
    case EdgeKind::kLaunch:
      return "launch latency";
    case EdgeKind::kQueue:
      return "between GPU work";
    case EdgeKind::kStreamWait:
      return "stream wait";
    case EdgeKind::kGpuWait:
      return "end of GPU wait";
  }
  return {};
}

CriticalWindow FindCriticalSteps(Analysis& analysis, const StepOptions& options) {
  return FindCriticalSteps(analysis, FindSteps(analysis, options.definition), options.range);
}

namespace {

// Places of the first and the last one. What happens in a pause of the recording is not known, so
// no path leads through it.
using StepPlaces = std::pair<size_t, size_t>;
StepPlaces LongestWithoutPause(const Model& model, const std::vector<Step>& steps,
                               const StepPlaces& places) {
  const Interruptions interruptions(model);
  StepPlaces longest = {places.first, places.first};
  StepPlaces now = longest;
  const auto length = [&](const StepPlaces& of) {
    return steps[of.second].end_ns - steps[of.first].start_ns;
  };
  for (size_t i = places.first + 1; i <= places.second; ++i) {
    if (interruptions.Cut(steps[i - 1].end_ns, steps[i].start_ns)) now = {i, i};
    now.second = i;
    if (length(now) > length(longest)) longest = now;
  }
  return longest;
}

}  // namespace

CriticalWindow FindCriticalSteps(const Analysis& analysis, const std::vector<StepSeries>& all,
                                 const std::optional<StepRange>& range) {
  const auto weight = [](const StepSeries& series) {
    return series.steps.back().end_ns - series.steps.front().start_ns;
  };
  const auto longest = std::max_element(
      all.begin(), all.end(),
      [&](const StepSeries& a, const StepSeries& b) { return weight(a) < weight(b); });
  if (longest == all.end()) return {};
  const std::vector<Step>& steps = longest->steps;
  size_t first = longest->warm_up;
  size_t last = steps.size() - 1;
  if (range) {
    first = std::min<uint64_t>(range->first, last);
    last = std::min<uint64_t>(range->last, last);
  }
  const Selection& shown = analysis.shown;
  while (first <= last && steps[first].start_ns < shown.from_ns) ++first;
  while (last > first && steps[last].end_ns > shown.to_ns) --last;
  if (first > last || steps[last].end_ns > shown.to_ns) return {};
  uint64_t all_steps_ns = 0;
  for (size_t i = first; i <= last; ++i) {
    all_steps_ns = AddSaturated(all_steps_ns, steps[i].end_ns - steps[i].start_ns);
  }
  std::tie(first, last) = LongestWithoutPause(analysis.model, steps, {first, last});
  return {.thread = longest->thread,
          .from_ns = steps[first].start_ns,
          .to_ns = steps[last].end_ns,
          .steps = last - first + 1,
          .first = first,
          .all_steps_ns = all_steps_ns};
}

CriticalPath::CriticalPath(Analysis& analysis, CallPaths& paths, const CriticalWindow& steps,
                           const RecordingPart& part)
    : analysis_(analysis), paths_(paths), graph_(analysis, part), window_(steps) {
  ChooseWindow();
  FindSegments();
}

bool CriticalPath::IsWanted(uint32_t pid) const {
  return !analysis_.shown.pids || analysis_.shown.pids->contains(pid);
}

// The first thread of the process that launches most; the thread that does, if that has no lane.
std::optional<uint32_t> CriticalPath::ChooseLane() const {
  std::map<ProcessId, size_t> calls;
  std::map<uint32_t, size_t> lane_calls;
  for (const Launch& launch : analysis_.correlation.launches) {
    const std::optional<uint32_t> lane = graph_.LaneOf(launch.owner().thread());
    if (!lane || !IsWanted(launch.pid)) continue;
    ++calls[launch.process];
    ++lane_calls[*lane];
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto process = std::max_element(calls.begin(), calls.end(), by_count);
  if (process != calls.end() && process->first) {
    const uint32_t pid = analysis_.processes[process->first].pid;
    if (const auto lane = graph_.LaneOf({process->first, pid})) return lane;
  }
  if (!lane_calls.empty()) {
    return std::max_element(lane_calls.begin(), lane_calls.end(), by_count)->first;
  }
  // A program without a GPU: the first of the threads that existed for the longest time.
  std::optional<uint32_t> longest;
  uint64_t most_ns = 0;
  for (uint32_t lane = 0; lane < graph_.lanes().size(); ++lane) {
    const ThreadLane& of = graph_.lanes()[lane];
    if (of.nodes.empty() || of.owner.pid != of.owner.tid || !IsWanted(of.owner.pid)) continue;
    const uint64_t ns =
        graph_.graph().TimeOf(of.nodes.back()) - graph_.graph().TimeOf(of.nodes.front());
    if (!longest || ns > most_ns) longest = lane;
    most_ns = std::max(most_ns, ns);
  }
  return longest;
}

void CriticalPath::ChooseWindow() {
  const Selection& shown = analysis_.shown;
  if (window_.steps != 0) {
    const auto lane = graph_.LaneOf(window_.thread.thread());
    const auto end = lane ? graph_.LastNode(*lane, window_.to_ns) : std::nullopt;
    if (end && graph_.graph().TimeOf(*end) > window_.from_ns) {
      end_ = *end;
      window_.to_ns = graph_.graph().TimeOf(*end);
      return;
    }
  }
  window_ = {};
  const std::optional<uint32_t> lane = ChooseLane();
  if (!lane) return;
  const std::optional<uint32_t> end = graph_.LastNode(*lane, shown.to_ns);
  if (!end) return;
  end_ = *end;
  window_.thread = graph_.lanes()[*lane].owner;
  window_.to_ns = graph_.graph().TimeOf(end_);
  window_.from_ns = graph_.graph().TimeOf(graph_.lanes()[*lane].nodes.front());
  window_.from_ns = std::min(std::max(window_.from_ns, shown.from_ns), window_.to_ns);
}

void CriticalPath::FindSegments() {
  if (window_.to_ns <= window_.from_ns) return;
  uint64_t until_ns = window_.from_ns;
  const HugePageVector<Edge> path = graph_.graph().PathTo(end_, window_.from_ns);
  segments_.reserve(path.size());
  for (const Edge& edge : path) {
    const uint64_t start_ns = std::max(graph_.graph().TimeOf(edge.from), window_.from_ns);
    // It began with a node of which nothing says what that waited for.
    if (start_ns > until_ns) {
      Edge unknown{.index = UINT32_MAX, .kind = EdgeKind::kWait, .is_assumed = true};
      segments_.push_back({until_ns, start_ns, unknown});
    }
    until_ns = graph_.graph().TimeOf(edge.to);
    segments_.push_back({start_ns, until_ns, edge});
  }
  for (const CriticalSegment& segment : segments_) {
    if (segment.edge.is_assumed) assumed_ns_ += segment.ns();
  }
}

Owner CriticalPath::OwnerOf(const Edge& edge) const {
  if (edge.kind == EdgeKind::kRunning) return graph_.lanes()[edge.index].owner;
  if (IsOfGpu(edge.kind)) return analysis_.correlation.work[edge.index].owner();
  if (edge.kind == EdgeKind::kCall || edge.kind == EdgeKind::kGpuWait) {
    return analysis_.correlation.launches[edge.index].owner();
  }
  if (IsOfWait(edge.kind) && edge.index != UINT32_MAX) {
    return analysis_.model.events.off_cpu_waits[edge.index].owner();
  }
  return window_.thread;
}

PathId CriticalPath::PathOf(const Edge& edge) {
  if (IsOfGpu(edge.kind)) return paths_.OfWork(analysis_.correlation.work[edge.index]);
  if (edge.kind == EdgeKind::kCall || edge.kind == EdgeKind::kGpuWait) {
    return paths_.OfLaunch(analysis_.correlation.launches[edge.index]);
  }
  if (IsOfWait(edge.kind) && edge.index != UINT32_MAX) {
    return paths_.OfWait(analysis_.model.events.off_cpu_waits[edge.index]);
  }
  return paths_.OfThread(OwnerOf(edge));
}

PathId CriticalPath::PathAt(uint32_t node) {
  const Site site = graph_.SiteOf(node);
  switch (site.kind) {
    case Site::Kind::kNone:
      break;
    case Site::Kind::kLaunch:
      return paths_.OfLaunch(analysis_.correlation.launches[site.index]);
    case Site::Kind::kWait:
      return paths_.OfWait(analysis_.model.events.off_cpu_waits[site.index]);
    case Site::Kind::kWaker:
      return paths_.OfWaker(analysis_.model.events.off_cpu_waits[site.index]);
  }
  return {};
}

CriticalPath::Stretch& CriticalPath::StretchOf(const Edge& running) {
  // Speedups go through all edges of the graph again and again; those of the path are copies.
  const std::span<const Edge> edges = graph_.graph().edges();
  const bool is_of_graph = !std::less<>()(&running, edges.data()) &&
                           std::less<>()(&running, edges.data() + edges.size());
  if (is_of_graph) {
    stretch_of_.resize(edges.size());
    Stretch*& known = stretch_of_[static_cast<size_t>(&running - edges.data())];
    if (known == nullptr) known = &FindStretch(running);
    return *known;
  }
  return FindStretch(running);
}

CriticalPath::Stretch& CriticalPath::FindStretch(const Edge& running) {
  const PathId from = PathAt(running.from);
  const PathId to = PathAt(running.to);
  Stretch& stretch = stretches_[uint64_t{from.value} << 32 | to.value];
  stretch.from = from;
  stretch.to = to;
  return stretch;
}

void CriticalPath::AddSamples() {
  const SampleWeights weights(analysis_.model, analysis_.shown);
  const DependencyGraph& graph = graph_.graph();
  for (const Owned<CpuSample>& sample : analysis_.model.events.cpu_samples) {
    // Before it, the same places of the code may lie between other things: imports, compilation.
    if (sample.time_ns < window_.from_ns || sample.time_ns > window_.to_ns) continue;
    if (!weights.IsOfTime(sample)) continue;
    const std::optional<uint32_t> lane = graph_.LaneOf(sample.owner().thread());
    if (!lane) continue;
    const std::vector<uint32_t>& nodes = graph_.lanes()[*lane].nodes;
    const auto after =
        std::upper_bound(nodes.begin(), nodes.end(), sample.time_ns,
                         [&](uint64_t ns, uint32_t node) { return ns < graph.TimeOf(node); });
    if (after == nodes.begin() || after == nodes.end()) continue;
    for (const Edge& edge : graph.EdgesTo(*after)) {
      if (edge.kind != EdgeKind::kRunning || edge.index != *lane) continue;
      if (graph.TimeOf(edge.from) > sample.time_ns) continue;
      StretchOf(edge).code.push_back({paths_.Of(sample), static_cast<double>(weights.Of(sample))});
      break;
    }
  }
}

void CriticalPath::CountCode() {
  has_samples_ = true;
  AddSamples();
  // Off-CPU data makes this guess unnecessary.
  std::unordered_map<Stretch*, const Edge*> one_of;
  if (!graph_.has_off_cpu()) {
    for (const Edge& edge : graph_.graph().edges()) {
      if (edge.kind != EdgeKind::kRunning) continue;
      if (graph_.graph().TimeOf(edge.from) < window_.from_ns) continue;
      if (graph_.graph().TimeOf(edge.to) > window_.to_ns) continue;
      Stretch& stretch = StretchOf(edge);
      stretch.ns = AddSaturated(stretch.ns, edge.ns);
      if (edge.is_assumed) one_of[&stretch] = &edge;
    }
  }
  const FrameId no_sample = analysis_.frames.Intern(kNoSampleFrame);
  for (auto& [key, stretch] : stretches_) {
    std::map<PathId, double> sums;
    double whole = 0;
    for (const CodeShare& part : stretch.code) {
      sums[part.path] += part.share;
      whole += part.share;
    }
    stretch.code.clear();
    for (const auto& [path, weight] : sums) {
      if (weight > 0) stretch.code.push_back({path, weight / whole});
    }
    const auto long_one = one_of.find(&stretch);
    const auto ns = static_cast<double>(stretch.ns);
    if (long_one == one_of.end() || whole > kMostlySampled * ns) continue;
    PathId place = AroundNearlyAll(paths_.tree(), stretch.code);
    if (!place) place = Between(stretch, *long_one->second);
    for (CodeShare& part : stretch.code) part.share *= whole / ns;
    stretch.code.push_back({paths_.tree().Child(place, no_sample), 1 - whole / ns});
  }
}

// The code that both places are in; where they have nothing in common, what leads to the second.
PathId CriticalPath::Between(const Stretch& stretch, const Edge& running) {
  const CallTree& tree = paths_.tree();
  const std::vector<FrameId> from = tree.Path(stretch.from);
  const std::vector<FrameId> to = tree.Path(stretch.to);
  size_t common = 0;
  while (common < std::min(from.size(), to.size()) && from[common] == to[common]) ++common;
  PathId path = common > 1 || !stretch.to ? stretch.from : stretch.to;
  size_t depth = common > 1 || !stretch.to ? from.size() : to.size();
  if (!path) return paths_.OfThread(OwnerOf(running));
  const bool is_to_itself = common > 1 && common == depth;  // the call itself is not meant
  const size_t wanted = common > 1 && !is_to_itself ? common : std::max<size_t>(depth, 2) - 1;
  for (; depth > wanted; --depth) path = tree[path].parent;
  return path;
}

const std::vector<CodeShare>& CriticalPath::CodeOf(const Edge& running) {
  if (!has_samples_) CountCode();
  Stretch& stretch = StretchOf(running);
  if (stretch.code.empty()) stretch.code.push_back({Between(stretch, running), 1.0});
  return stretch.code;
}

uint64_t CriticalPath::Reevaluate(const std::function<uint64_t(const Edge&)>& scale) const {
  if (empty()) return 0;
  const uint64_t then_ns = graph_.graph().Reevaluate(end_, window_.from_ns, scale);
  return then_ns - std::min(then_ns, window_.from_ns);
}

CallTree BuildCriticalTree(Analysis& analysis, const StepOptions& options, KernelNames kernel_names,
                           const PathOptions& path_options) {
  CallPaths paths(analysis, path_options);
  paths.NameAhead({.samples = true, .launches = true, .off_cpu_waits = true});
  CriticalPath critical(analysis, paths, options);
  CallTree& tree = paths.tree();
  GpuLeaves leaves(analysis, kernel_names);
  const auto leaf = [&](std::string_view text) {
    return analysis.frames.Intern(text, FrameOrigin::kOther);
  };
  // Running time is divided as a whole: parts of single stretches round to nothing.
  std::map<PathId, double> running;
  for (const CriticalSegment& segment : critical.segments()) {
    const Edge& edge = segment.edge;
    if (edge.kind == EdgeKind::kRunning) {
      for (const CodeShare& part : critical.CodeOf(edge)) {
        running[part.path] += part.share * static_cast<double>(segment.ns());
      }
      continue;
    }
    PathId path = critical.PathOf(edge);
    switch (edge.kind) {
      case EdgeKind::kKernel:
      case EdgeKind::kMemory:
      case EdgeKind::kGraph:
        path = tree.Child(path, leaves.Of(analysis.correlation.work[edge.index]));
        break;
      case EdgeKind::kWait:
        path = tree.Child(
            path,
            leaf(edge.index == UINT32_MAX
                     ? std::string("[unknown]")
                     : "[off-CPU] " + WaitName(analysis.model.events.off_cpu_waits[edge.index])));
        break;
      case EdgeKind::kRunnable:
        path = tree.Child(path, leaf("[off-CPU] runnable"));
        break;
      case EdgeKind::kCall:
        break;
      default:
        path = tree.Child(path, leaf(Format("[{}]", EdgeKindName(edge.kind))));
        break;
    }
    tree.Add(path, segment.ns());
  }
  double sum = 0;
  uint64_t given_ns = 0;
  for (const auto& [path, ns] : running) {
    sum += ns;
    const auto until_ns = ToSaturated(sum + 0.5);
    tree.Add(path, until_ns - given_ns);
    given_ns = until_ns;
  }
  return std::move(tree);
}

}  // namespace xpu
