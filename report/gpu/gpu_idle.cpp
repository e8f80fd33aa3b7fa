#include "report/gpu/gpu_idle.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "format/base/text.h"
#include "report/gpu/gpu_waits.h"
#include "report/gpu/idle_samples.h"
#include "report/gpu/work_intervals.h"

namespace xpu {
namespace {

std::string NameOfPart(const Analysis& analysis, const IdlePart& part, const CallTree& tree,
                       PathId path) {
  const Correlation& correlation = analysis.correlation;
  const auto api_of = [&](uint32_t launch) {
    return ApiNameOf(analysis.api_names, correlation.launches[launch]);
  };
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kMeanwhile:
      return analysis.frames[tree[path].frame].Label();
    case IdlePart::Cause::kWait: {
      const uint32_t launch = correlation.work[part.index].launch;
      return launch == GpuWork::kNoLaunch ? Format("{} in a synchronisation", kNoSampleFrame)
                                          : Format("{} in {}", kNoSampleFrame, api_of(launch));
    }
    case IdlePart::Cause::kLaunch:
      return Format("{} before {}", kNoSampleFrame, api_of(part.index));
    case IdlePart::Cause::kQueued:
      return "[launched before]";
    case IdlePart::Cause::kUnknown:
      break;
  }
  return Format("{} before an unknown launch", kNoSampleFrame);
}

}  // namespace

const Launch* LaunchAfter(const Analysis& analysis, const IdleGap& gap) {
  if (gap.after == IdleGap::kNoWork) return nullptr;
  const uint32_t launch = analysis.correlation.work[gap.after].launch;
  return launch == GpuWork::kNoLaunch ? nullptr : &analysis.correlation.launches[launch];
}

Owner OwnerOf(const Analysis& analysis, const IdleGap& gap) {
  if (gap.after == IdleGap::kNoWork) return {};
  return OwnerOf(analysis, analysis.correlation.work[gap.after]);
}

std::vector<IdleGap> FindAllGaps(const Analysis& analysis) {
  std::vector<IdleGap> all;
  const std::vector<Pause> uncounted = UncountedTime(analysis);
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    const std::vector<IdleGap> gaps = FindGaps(gpu, uncounted);
    all.insert(all.end(), gaps.begin(), gaps.end());
  }
  return all;
}

IdleParts::IdleParts(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis), samples_(analysis, paths) {
  const GpuWorkList& work = analysis.correlation.work;
  for (uint32_t i = 0; i < work.size(); ++i) {
    if (IsTimedWait(analysis, work[i])) waits_.Add(work[i], i);
  }
  waits_.Sort();
}

const std::vector<IdlePart>& IdleParts::Of(const IdleGap& gap) {
  parts_.clear();
  IdlePart otherwise{.gpu = gap.gpu, .cause = IdlePart::Cause::kUnknown};
  if (const Launch* launch = LaunchAfter(analysis_, gap)) {
    otherwise.index = static_cast<uint32_t>(launch - analysis_.correlation.launches.data());
    otherwise.cause = IdlePart::Cause::kLaunch;
    if (launch->end_ns <= gap.start_ns) {
      otherwise.cause = IdlePart::Cause::kQueued;
      otherwise.ns = gap.ns;
      parts_.push_back(otherwise);
      return parts_;
    }
  }
  AddThread(OwnerOf(analysis_, gap), {gap.start_ns, gap.end_ns}, otherwise);
  FitTo(gap.ns);
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
  shares_.clear();
  rest_.clear();
  samples_.OfThread(owner, stretch, shares_, rest_);
  for (const auto& [sample, ns] : shares_) {
    parts_.push_back({otherwise.gpu, Cause::kSample, sample, ns});
  }
  for (const IdleSamples::Stretch& rest : rest_) {
    if (const WorkIntervals::Interval* wait = WaitAround(owner, rest)) {
      parts_.push_back({otherwise.gpu, Cause::kWait, wait->index, rest.end_ns - rest.start_ns});
      continue;
    }
    shares_.clear();
    otherwise.ns += samples_.OfOthers(owner, rest, shares_);
    for (const auto& [sample, ns] : shares_) {
      if (ns > 0) parts_.push_back({otherwise.gpu, Cause::kMeanwhile, sample, ns});
    }
  }
  if (otherwise.ns > 0) parts_.push_back(otherwise);
}

// A wait of the thread, or of one that is not known.
const WorkIntervals::Interval* IdleParts::WaitAround(const Owner& owner,
                                                     IdleSamples::Stretch stretch) const {
  for (const WorkIntervals::Interval& wait : waits_.Around(stretch.start_ns, stretch.end_ns)) {
    if (wait.start_ns > stretch.start_ns || wait.end_ns < stretch.end_ns) continue;
    const GpuWork& work = analysis_.correlation.work[wait.index];
    if (work.launch == GpuWork::kNoLaunch) return &wait;
    if (analysis_.correlation.launches[work.launch].tid == owner.tid) return &wait;
  }
  return nullptr;
}

// A gap counts for less than its length where the recording was paused.
void IdleParts::FitTo(uint64_t gap_ns) {
  uint64_t sum_ns = 0;
  for (const IdlePart& part : parts_) sum_ns += part.ns;
  if (sum_ns == gap_ns) return;
  uint64_t until_ns = 0;
  uint64_t given_ns = 0;
  for (IdlePart& part : parts_) {
    until_ns += part.ns;
    const double share = static_cast<double>(until_ns) / static_cast<double>(sum_ns);
    const uint64_t up_to =
        until_ns == sum_ns ? gap_ns : static_cast<uint64_t>(share * static_cast<double>(gap_ns));
    part.ns = up_to - given_ns;
    given_ns = up_to;
  }
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
      return paths_.OfSample(analysis_.model.events.cpu_samples[part.index]);
    case IdlePart::Cause::kWait:
      return tree.Child(paths_.OfWork(analysis_.correlation.work[part.index]), no_sample_);
    case IdlePart::Cause::kLaunch:
      return BehindNoSample(analysis_.correlation.launches[part.index]);
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
      return xpu::OwnerOf(analysis_, analysis_.model.events.cpu_samples[part.index]);
    case IdlePart::Cause::kWait:
      return xpu::OwnerOf(analysis_, analysis_.correlation.work[part.index]);
    case IdlePart::Cause::kLaunch:
      return xpu::OwnerOf(analysis_, analysis_.correlation.launches[part.index]);
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
  paths.NameAhead({.samples = true});
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
