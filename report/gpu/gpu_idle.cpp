#include "report/gpu/gpu_idle.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/gpu/gpu_busy.h"
#include "report/model/recorded_time.h"

namespace xpu {
namespace {

constexpr std::string_view kNoSample = "[no CPU sample]";

bool IsWait(const GpuWork& work) {
  return work.timed && work.kind == WorkKind::kSynchronization && work.end_ns > work.start_ns;
}

// Intervals that may overlap, to be searched by time.
class Intervals {
 public:
  struct Interval {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t index = 0;  // in Correlation::work
  };

  void Add(const GpuWork& work, uint32_t index) {
    all_.push_back({work.start_ns, work.end_ns, index});
  }
  void Sort() {
    std::sort(all_.begin(), all_.end(), [](const Interval& a, const Interval& b) {
      return std::tie(a.start_ns, a.index) < std::tie(b.start_ns, b.index);
    });
    end_so_far_.reserve(all_.size());
    uint64_t end_ns = 0;
    for (const Interval& interval : all_) {
      end_ns = std::max(end_ns, interval.end_ns);
      end_so_far_.push_back(end_ns);
    }
  }

  // Those that overlap [start_ns, end_ns) lie in it, in order of their start.
  std::span<const Interval> Around(uint64_t start_ns, uint64_t end_ns) const {
    const auto first = std::upper_bound(end_so_far_.begin(), end_so_far_.end(), start_ns);
    const auto last =
        std::lower_bound(all_.begin(), all_.end(), end_ns,
                         [](const Interval& a, uint64_t time_ns) { return a.start_ns < time_ns; });
    const auto begin = static_cast<size_t>(first - end_so_far_.begin());
    const auto end = static_cast<size_t>(last - all_.begin());
    return begin < end ? std::span(all_).subspan(begin, end - begin) : std::span<const Interval>();
  }

 private:
  std::vector<Interval> all_;
  std::vector<uint64_t> end_so_far_;  // the largest end of all_[0..i]
};

class IdleFinder {
 public:
  explicit IdleFinder(const Analysis& analysis)
      : analysis_(analysis),
        samples_(analysis.model.events.cpu_samples),
        pauses_(FindPauses(analysis.model)) {
    const GpuWorkList& work = analysis.correlation.work;
    for (uint32_t i = 0; i < work.size(); ++i) {
      if (IsWait(work[i])) waits_.Add(work[i], i);
    }
    waits_.Sort();
  }

  std::vector<IdlePart> Find() {
    for (const GpuBusy& gpu : FindGpuBusy(analysis_)) {
      for (size_t i = 1; i < gpu.spans.size(); ++i) {
        AddGap(gpu.gpu, gpu.spans[i - 1].end_ns, gpu.spans[i]);
      }
    }
    return std::move(parts_);
  }

 private:
  void AddGap(uint32_t gpu, uint64_t start_ns, const BusySpan& next) {
    const uint64_t gap_ns = next.start_ns - start_ns - PausedNs(pauses_, start_ns, next.start_ns);
    if (gap_ns == 0) return;
    const auto earlier = [](const CpuSample& sample, uint64_t ns) { return sample.time_ns < ns; };
    const auto first = std::lower_bound(samples_.begin(), samples_.end(), start_ns, earlier);
    const auto last = std::lower_bound(first, samples_.end(), next.start_ns, earlier);
    const auto count = static_cast<uint64_t>(last - first);
    if (count == 0) return parts_.push_back(WithoutSample(gpu, start_ns, gap_ns, next));
    for (uint64_t i = 0; i < count; ++i) {
      // What does not divide goes to the first ones.
      const uint64_t ns = gap_ns / count + (i < gap_ns % count ? 1 : 0);
      const auto index = static_cast<uint32_t>(first - samples_.begin()) + static_cast<uint32_t>(i);
      parts_.push_back({gpu, IdlePart::Cause::kSample, index, ns});
    }
  }

  IdlePart WithoutSample(uint32_t gpu, uint64_t start_ns, uint64_t gap_ns,
                         const BusySpan& next) const {
    using Cause = IdlePart::Cause;
    IdlePart part{.gpu = gpu, .ns = gap_ns};
    const GpuWorkList& work = analysis_.correlation.work;
    for (const auto& wait : waits_.Around(start_ns, next.start_ns)) {
      if (wait.start_ns > start_ns || wait.end_ns < next.start_ns) continue;
      part.cause = Cause::kWait;
      part.index = wait.index;
      return part;
    }
    if (work[next.first].launch == GpuWork::kNoLaunch) return part;
    part.index = work[next.first].launch;
    const bool in_gap = analysis_.correlation.launches[part.index].end_ns > start_ns;
    part.cause = in_gap ? Cause::kLaunch : Cause::kQueued;
    return part;
  }

  const Analysis& analysis_;
  const SampleList& samples_;
  const std::vector<Pause> pauses_;
  Intervals waits_;
  std::vector<IdlePart> parts_;
};

std::string NameOfPart(const Analysis& analysis, const IdlePart& part, const CallTree& tree,
                       PathId path) {
  const Correlation& correlation = analysis.correlation;
  const auto api_of = [&](uint32_t launch) {
    return ApiNameOf(analysis.api_names, correlation.launches[launch]);
  };
  switch (part.cause) {
    case IdlePart::Cause::kSample:
      return analysis.frames[tree[path].frame].Label();
    case IdlePart::Cause::kWait: {
      const uint32_t launch = correlation.work[part.index].launch;
      return launch == GpuWork::kNoLaunch ? Format("{} in a synchronisation", kNoSample)
                                          : Format("{} in {}", kNoSample, api_of(launch));
    }
    case IdlePart::Cause::kLaunch:
      return Format("{} before {}", kNoSample, api_of(part.index));
    case IdlePart::Cause::kQueued:
      return Format("{} the next work was launched before", kNoSample);
    case IdlePart::Cause::kUnknown:
      break;
  }
  return Format("{} before an unknown launch", kNoSample);
}

// Values by name.
using Values = std::map<std::string, std::vector<uint64_t>>;

std::vector<Statistics> ByTotal(Values& values) {
  std::vector<Statistics> rows;
  for (auto& [name, of_name] : values) rows.push_back(Summarize(name, of_name));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Statistics& a, const Statistics& b) { return a.total > b.total; });
  return rows;
}

// What ran during waits, by process and stream.
class WaitFinder {
 public:
  WaitFinder(const Analysis& analysis, const GpuNames& names) : analysis_(analysis), names_(names) {
    const GpuWorkList& work = analysis.correlation.work;
    for (uint32_t i = 0; i < work.size(); ++i) {
      if (!work[i].timed || work[i].kind == WorkKind::kSynchronization) continue;
      of_process_[work[i].instance].Add(work[i], i);
      of_stream_[{work[i].instance, work[i].stream_id}].Add(work[i], i);
    }
    for (auto& [instance, intervals] : of_process_) intervals.Sort();
    for (auto& [stream, intervals] : of_stream_) intervals.Sort();
  }

  Values Find() {
    for (const GpuWork& work : analysis_.correlation.work) {
      if (IsWait(work)) AddWait(work);
    }
    return std::move(values_);
  }

 private:
  bool IsOfStream(const GpuWork& wait) const {
    const uint32_t type =
        analysis_.model.events.synchronizations.Get<&Synchronization::type>(wait.index);
    return SynchronizationName(type) == "stream";
  }

  void AddWait(const GpuWork& wait) {
    const std::string call =
        wait.launch == GpuWork::kNoLaunch
            ? names_.Title(wait)
            : ApiNameOf(analysis_.api_names, analysis_.correlation.launches[wait.launch]);
    const Intervals& running =
        IsOfStream(wait) ? of_stream_[{wait.instance, wait.stream_id}] : of_process_[wait.instance];
    std::map<std::string, uint64_t> waited;  // one value for each name and wait
    uint64_t until_ns = wait.start_ns;
    uint64_t ran_ns = 0;
    for (const auto& interval : running.Around(wait.start_ns, wait.end_ns)) {
      const uint64_t begin_ns = std::max(interval.start_ns, until_ns);
      const uint64_t end_ns = std::min(interval.end_ns, wait.end_ns);
      if (end_ns <= begin_ns) continue;
      waited[names_.Title(analysis_.correlation.work[interval.index])] += end_ns - begin_ns;
      ran_ns += end_ns - begin_ns;
      until_ns = end_ns;
    }
    const uint64_t rest_ns = wait.end_ns - wait.start_ns - ran_ns;
    if (rest_ns > 0) waited["[nothing running]"] = rest_ns;
    for (const auto& [name, ns] : waited) values_[Format("{}: {}", call, name)].push_back(ns);
  }

  const Analysis& analysis_;
  const GpuNames& names_;
  std::map<InstanceId, Intervals> of_process_;
  std::map<std::pair<InstanceId, uint32_t>, Intervals> of_stream_;
  Values values_;
};

}  // namespace

std::vector<IdlePart> FindIdleParts(const Analysis& analysis) {
  return IdleFinder(analysis).Find();
}

IdlePaths::IdlePaths(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis),
      paths_(paths),
      no_sample_(analysis.frames.Intern(kNoSample)),
      queued_(analysis.frames.Intern("[launched before]")),
      unknown_(analysis.frames.Intern("[unknown launch]")) {}

PathId IdlePaths::Of(const IdlePart& part) {
  CallTree& tree = paths_.tree();
  switch (part.cause) {
    case IdlePart::Cause::kSample:
      return paths_.OfSample(analysis_.model.events.cpu_samples[part.index]);
    case IdlePart::Cause::kWait:
      return tree.Child(paths_.OfWork(analysis_.correlation.work[part.index]), no_sample_);
    case IdlePart::Cause::kLaunch:
      return BehindNoSample(analysis_.correlation.launches[part.index]);
    case IdlePart::Cause::kQueued:
      return tree.Child(tree.Child(PathId{}, no_sample_), queued_);
    case IdlePart::Cause::kUnknown:
      break;
  }
  return tree.Child(tree.Child(PathId{}, no_sample_), unknown_);
}

Owner IdlePaths::OwnerOf(const IdlePart& part) const {
  switch (part.cause) {
    case IdlePart::Cause::kSample:
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

std::vector<Statistics> IdleTimes(Analysis& analysis) {
  CallPaths paths(analysis, {});
  paths.NameAhead({.samples = true});
  IdlePaths idle(analysis, paths);
  const std::vector<IdlePart> parts = FindIdleParts(analysis);
  const bool several = std::any_of(parts.begin(), parts.end(), [&](const IdlePart& part) {
    return part.gpu != parts.front().gpu;
  });
  Values values;
  for (const IdlePart& part : parts) {
    const PathId path = part.cause == IdlePart::Cause::kSample ? idle.Of(part) : PathId{};
    const std::string name = NameOfPart(analysis, part, paths.tree(), path);
    values[several ? Format("GPU {}: {}", part.gpu, name) : name].push_back(part.ns);
  }
  return ByTotal(values);
}

std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names) {
  Values values = WaitFinder(analysis, names).Find();
  return ByTotal(values);
}

}  // namespace xpu
