#include "report/query/gpu_idle.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "format/base/text.h"
#include "report/query/gpu_waits.h"
#include "report/query/idle_samples.h"
#include "report/query/work_intervals.h"

namespace xpu {
namespace {

std::string NameOfPart(const Analysis& analysis, const IdlePart& part, const CallTree& tree,
                       PathId path) {
  const auto api_of = [&](const Launch& launch) { return ApiNameOf(analysis.api_names, launch); };
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kMeanwhile:
      return analysis.frames[tree[path].frame].Label();
    case IdlePart::Cause::kWait:
      return part.launch == nullptr ? Format("{} in a synchronisation", kNoSampleFrame)
                                    : Format("{} in {}", kNoSampleFrame, api_of(*part.launch));
    case IdlePart::Cause::kLaunch:
      return Format("{} before {}", kNoSampleFrame, api_of(*part.launch));
    case IdlePart::Cause::kQueued:
      return "[launched before]";
    case IdlePart::Cause::kUnknown:
      break;
  }
  return Format("{} before an unknown launch", kNoSampleFrame);
}

}  // namespace

Owner OwnerOf(const Analysis& analysis, const IdleGap& gap) {
  if (gap.launch != nullptr) return OwnerOf(analysis, *gap.launch);
  if (gap.other != nullptr) {
    return {.process = analysis.processes.At(gap.other->pid, gap.other->start_ns),
            .pid = gap.other->pid,
            .tid = gap.other->tid,
            .time_ns = gap.other->start_ns};
  }
  return gap.after == nullptr ? Owner{} : OwnerOf(analysis, *gap.after);
}

std::vector<IdleGap> FindAllGaps(const Analysis& analysis) {
  std::vector<IdleGap> all;
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    const std::vector<IdleGap> gaps = FindGaps(analysis, gpu);
    all.insert(all.end(), gaps.begin(), gaps.end());
  }
  return all;
}

IdleParts::IdleParts(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis), samples_(analysis, paths), uncounted_(UncountedTime(analysis)) {
  for (const GpuWork& work : analysis.correlation.work) {
    if (!IsTimedWait(analysis, work)) continue;
    AddWait(work, work.launch == GpuWork::kNoLaunch ? nullptr
                                                    : &analysis.correlation.launches[work.launch]);
  }
  for (const WorkLeftOut& wait : analysis.waits_left_out) {
    AddWait(wait.work, wait.launch ? &*wait.launch : nullptr);
  }
  wait_times_.Sort();
}

void IdleParts::AddWait(const GpuWork& work, const Launch* launch) {
  wait_times_.Add(work, static_cast<uint32_t>(waits_.size()));
  waits_.push_back({&work, launch});
}

const std::vector<IdlePart>& IdleParts::Of(const IdleGap& gap) {
  parts_.clear();
  IdlePart otherwise{.gpu = gap.gpu, .cause = IdlePart::Cause::kUnknown, .launch = gap.launch};
  if (gap.launch != nullptr) otherwise.cause = IdlePart::Cause::kLaunch;
  const bool is_queued = (gap.launch != nullptr && gap.launch->end_ns <= gap.start_ns) ||
                         (gap.other != nullptr && gap.other->launched_ns <= gap.start_ns);
  if (is_queued) {
    otherwise.cause = IdlePart::Cause::kQueued;
    otherwise.ns = gap.ns;
    parts_.push_back(otherwise);
    return parts_;
  }
  const Owner owner = OwnerOf(analysis_, gap);
  uint64_t start_ns = gap.start_ns;
  auto pause = std::upper_bound(uncounted_.begin(), uncounted_.end(), start_ns,
                                [](uint64_t time, const Pause& one) { return time < one.end_ns; });
  for (; pause != uncounted_.end() && pause->start_ns < gap.end_ns; ++pause) {
    if (pause->start_ns > start_ns) AddThread(owner, {start_ns, pause->start_ns}, otherwise);
    start_ns = std::min(std::max(start_ns, pause->end_ns), gap.end_ns);
  }
  if (gap.end_ns > start_ns) AddThread(owner, {start_ns, gap.end_ns}, otherwise);
  return parts_;
}

const std::vector<IdlePart>& IdleParts::Of(const Owner& thread, uint64_t start_ns,
                                           uint64_t end_ns) {
  parts_.clear();
  AddThread(thread, {start_ns, end_ns}, {.cause = IdlePart::Cause::kUnknown});
  return parts_;
}

void IdleParts::AddThread(const Owner& owner, IdleSamples::Stretch stretch, IdlePart otherwise) {
  using Cause = IdlePart::Cause;
  const auto add_samples = [&](Cause cause) {
    for (const auto& [sample, ns] : shares_) {
      if (ns == 0) continue;
      parts_.push_back({.gpu = otherwise.gpu, .cause = cause, .ns = ns, .sample = sample});
    }
  };
  shares_.clear();
  rest_.clear();
  samples_.OfThread(owner, stretch, shares_, rest_);
  add_samples(Cause::kSample);
  for (const IdleSamples::Stretch& rest : rest_) {
    if (const Wait* wait = WaitAround(owner, rest)) {
      parts_.push_back({.gpu = otherwise.gpu,
                        .cause = Cause::kWait,
                        .ns = rest.end_ns - rest.start_ns,
                        .wait = wait->work,
                        .launch = wait->launch});
      continue;
    }
    shares_.clear();
    otherwise.ns += samples_.OfOthers(owner, rest, shares_);
    add_samples(Cause::kMeanwhile);
  }
  if (otherwise.ns > 0) parts_.push_back(otherwise);
}

// A wait of the thread, or of one that is not known.
const IdleParts::Wait* IdleParts::WaitAround(const Owner& owner,
                                             IdleSamples::Stretch stretch) const {
  for (const WorkIntervals::Interval& time : wait_times_.Around(stretch.start_ns, stretch.end_ns)) {
    if (time.start_ns > stretch.start_ns || time.end_ns < stretch.end_ns) continue;
    const Wait& wait = waits_[time.index];
    if (wait.launch == nullptr || wait.launch->tid == owner.tid) return &wait;
  }
  return nullptr;
}

IdlePaths::IdlePaths(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis),
      paths_(paths),
      no_sample_(analysis.frames.Intern(kNoSampleFrame)),
      queued_(analysis.frames.Intern("[launched before]")),
      unknown_(analysis.frames.Intern("[unknown launch]")) {}

PathId IdlePaths::Of(const IdlePart& part) {
  CallTree& tree = paths_.tree();
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kMeanwhile:
      return paths_.OfSample(*part.sample);
    case IdlePart::Cause::kWait:
      return tree.Child(
          part.launch == nullptr ? paths_.OfWork(*part.wait) : paths_.OfLaunch(*part.launch),
          no_sample_);
    case IdlePart::Cause::kLaunch:
      return BehindNoSample(*part.launch);
    case IdlePart::Cause::kQueued:
      return tree.Child(PathId{}, queued_);
    case IdlePart::Cause::kUnknown:
      break;
  }
  return tree.Child(tree.Child(PathId{}, no_sample_), unknown_);
}

Owner IdlePaths::OwnerOf(const IdlePart& part) const {
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kMeanwhile:
      return xpu::OwnerOf(analysis_, *part.sample);
    case IdlePart::Cause::kWait:
      if (part.launch == nullptr) return xpu::OwnerOf(analysis_, *part.wait);
      return xpu::OwnerOf(analysis_, *part.launch);
    case IdlePart::Cause::kLaunch:
      return xpu::OwnerOf(analysis_, *part.launch);
    case IdlePart::Cause::kQueued:
    case IdlePart::Cause::kUnknown:
      break;
  }
  return {};
}

PathId IdlePaths::BehindNoSample(const Launch& launch) {
  CallTree& tree = paths_.tree();
  const std::vector<FrameId> frames = tree.Path(paths_.OfLaunch(launch));
  PathId path = tree.Child(tree.Child(PathId{}, frames.front()), no_sample_);
  for (size_t i = 1; i < frames.size(); ++i) path = tree.Child(path, frames[i]);
  return path;
}

PathId IdlePaths::MostOf(const std::vector<IdlePart>& parts) {
  std::map<PathId, uint64_t> times;
  for (const IdlePart& part : parts) times[Of(part)] += part.ns;
  return xpu::MostOf(paths_.tree(), times);
}

PathId MostOf(const CallTree& tree, const std::map<PathId, uint64_t>& times) {
  std::map<PathId, uint64_t> below = times;
  uint64_t whole_ns = 0;
  for (const auto& [of, ns] : times) whole_ns += ns;
  // Parents come before their children.
  for (auto at = below.rbegin(); at != below.rend(); ++at) {
    if (const PathId parent = tree[at->first].parent) below[parent] += at->second;
  }
  PathId most;
  for (const auto& [path, ns] : below) {
    if (tree[path].parent == most && ns >= whole_ns - ns) most = path;
  }
  return most;
}

std::vector<Statistics> IdleTimes(Analysis& analysis) {
  CallPaths paths(analysis, {});
  paths.NameAhead({.samples = true, .samples_left_out = true});
  IdlePaths idle(analysis, paths);
  const std::vector<IdleGap> gaps = FindAllGaps(analysis);
  const bool several = std::any_of(gaps.begin(), gaps.end(),
                                   [&](const IdleGap& gap) { return gap.gpu != gaps.front().gpu; });
  IdleParts parts(analysis, paths);
  NamedValues values;
  for (const IdleGap& gap : gaps) {
    for (const IdlePart& part : parts.Of(gap)) {
      const bool is_sample =
          part.cause == IdlePart::Cause::kSample || part.cause == IdlePart::Cause::kMeanwhile;
      const std::string name =
          NameOfPart(analysis, part, paths.tree(), is_sample ? idle.Of(part) : PathId{});
      values[several ? Format("GPU {}: {}", part.gpu, name) : name].push_back(part.ns);
    }
  }
  return SummarizeByTotal(values);
}

}  // namespace xpu
