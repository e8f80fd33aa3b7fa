#include "report/ranks/late_ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/gpu_names.h"
#include "report/base/intervals.h"
#include "report/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_idle.h"
#include "report/query/readable_paths.h"
#include "report/query/unfinished_work.h"

namespace xpu {
namespace {

class StragglerFinder {
 public:
  StragglerFinder(Analysis& analysis, const Collectives& collectives, CallPaths& paths)
      : analysis_(analysis),
        collectives_(collectives),
        paths_(paths),
        readable_(analysis, paths.tree()),
        leaves_(analysis, KernelNames::kFull) {
    SortEvents();
  }

  std::vector<Straggler> Find() {
    std::map<std::tuple<Member, LateCause, PathId>, Straggler> found;
    std::map<Member, uint64_t> ended_ns;  // the collective before
    for (const Collective& collective : collectives_.all) {
      if (const uint64_t waited_ns = collective.waited_ns(); waited_ns > 0) {
        const CollectivePart& late = collective.parts[collective.awaited];
        const uint64_t lateness_ns = waited_ns / (collective.arrived - 1);
        const auto [cause, path, stacks] = CauseOf(late, ended_ns[late.member()], lateness_ns);
        Straggler& one = found[{late.member(), cause, path}];
        one.rank = late.rank;
        one.gpu = late.gpu;
        one.cause = cause;
        one.path = path;
        ++one.count;
        one.waited_ns = AddSaturated(one.waited_ns, waited_ns);
        one.delay_ns = AddSaturated(one.delay_ns, collective.delay_ns());
        one.longest_ns = std::max(one.longest_ns, collective.delay_ns());
        for (const auto& [stack, ns] : stacks) one.python_stacks[stack] += ns;
      }
      for (const CollectivePart& part : collective.parts) {
        uint64_t& ns = ended_ns[part.member()];
        if (part.has_times()) ns = std::max(ns, part.end_ns);
      }
    }
    std::vector<Straggler> stragglers;
    for (auto& [key, one] : found) stragglers.push_back(std::move(one));
    std::stable_sort(stragglers.begin(), stragglers.end(),
                     [](const auto& a, const auto& b) { return a.waited_ns > b.waited_ns; });
    return stragglers;
  }

 private:
  using Member = CollectivePart::Member;

  struct Cause {
    LateCause cause = LateCause::kUnknown;
    PathId path = {};
    std::map<StackId, uint64_t> python_stacks = {};
  };
  // The time that a thread ran or waited, and its paths then.
  struct Ran {
    uint64_t ns = 0;
    std::map<PathId, uint64_t> times = {};
    std::map<StackId, uint64_t> python_stacks = {};
  };

  void SortEvents() {
    const GpuWorkList& all = analysis_.correlation.work;
    for (uint32_t i = 0; i < all.size(); ++i) {
      const GpuWork work = all[i];
      if (!work.timed || work.kind == WorkKind::kSynchronization) continue;
      const uint32_t rank = analysis_.job.Of(work.instance);
      if (rank != Job::kNone) work_[{rank, work.gpu}].push_back(i);
    }
    for (auto& [rank, places] : work_) {
      SortRuns(places, [&](uint32_t a, uint32_t b) {
        return all.Get<&GpuWork::start_ns>(a) < all.Get<&GpuWork::start_ns>(b);
      });
    }
    for (const SampleSource& source : analysis_.model.events.sample_sources) {
      periods_[source.source] = source.period;
      if (analysis_.model.Text(source.unit) == "ns") {
        period_ns_ = std::max(period_ns_, source.period);
      }
    }
    const auto& samples = analysis_.model.events.cpu_samples;
    for (uint32_t i = 0; i < samples.size(); ++i) {
      samples_[samples.Get<&CpuSample::pid>(i)].push_back(i);
    }
    const auto& waits = analysis_.model.events.off_cpu_waits;
    for (uint32_t i = 0; i < waits.size(); ++i) waits_[waits[i].tid].push_back(i);
  }

  // From the end of the collective before, to the arrival. A kernel that was launched in time had
  // to wait for other work of its GPU; else the launch itself came late.
  Cause CauseOf(const CollectivePart& late, uint64_t from_ns, uint64_t lateness_ns) {
    const uint64_t to_ns = late.arrived_ns;
    if (from_ns >= to_ns || late.work == CollectivePart::kNone) return {};
    const GpuWork kernel = analysis_.correlation.work[late.work];
    if (kernel.launch == GpuWork::kNoLaunch) return {};
    const Launch launch = analysis_.correlation.launches[kernel.launch];
    const uint64_t queued_ns = to_ns - std::min(to_ns, launch.end_ns);
    if (2 * queued_ns <= lateness_ns) {
      return OnCpu(launch, from_ns, std::min(to_ns, launch.end_ns), lateness_ns);
    }
    const uint32_t longest = LongestWork(late.member(), from_ns, to_ns);
    if (longest == CollectivePart::kNone) return {LateCause::kUnknown, OfLaunch(launch)};
    const GpuWork work = analysis_.correlation.work[longest];
    const PathId path = readable_.Of(paths_.OfWork(work));
    return {LateCause::kGpuWork, paths_.tree().Child(path, leaves_.Of(work))};
  }

  PathId OfLaunch(const Launch& launch) { return InPython(paths_.OfLaunch(launch)); }

  // A function of Python stands for the native ones that it calls.
  PathId InPython(PathId path) {
    const PathId readable = readable_.Of(path);
    for (PathId at = readable; at; at = paths_.tree()[at].parent) {
      const NamedFrame& frame = analysis_.frames[paths_.tree()[at].frame];
      if (frame.origin == FrameOrigin::kPython) return at;
    }
    return readable;
  }

  // kNone: the GPU did nothing then.
  uint32_t LongestWork(const Member& member, uint64_t from_ns, uint64_t to_ns) const {
    const GpuWorkList& all = analysis_.correlation.work;
    uint32_t longest = CollectivePart::kNone;
    uint64_t longest_ns = 0;
    const auto found = work_.find(member);
    if (found == work_.end()) return longest;
    const std::vector<uint32_t>& places = found->second;
    // Work that began before the end of the collective before, and still ran, is of another stream.
    auto at = std::lower_bound(places.begin(), places.end(), from_ns, [&](uint32_t i, uint64_t ns) {
      return all.Get<&GpuWork::start_ns>(i) < ns;
    });
    for (; at != places.end() && all.Get<&GpuWork::start_ns>(*at) < to_ns; ++at) {
      const uint64_t ns = OverlapNs(all[*at], Interval{from_ns, to_ns});
      if (ns <= longest_ns) continue;
      longest_ns = ns;
      longest = *at;
    }
    return longest;
  }

  // Finds what the process did, by the samples and waits of the thread that launched the kernel.
  // Where that thread hardly ran, it waited for another one of its process, which did.
  Cause OnCpu(const Launch& launch, uint64_t from_ns, uint64_t to_ns, uint64_t lateness_ns) {
    std::map<uint32_t, Ran> threads;
    const auto& samples = analysis_.model.events.cpu_samples;
    ForEachIn(
        samples_, launch.pid, from_ns, to_ns,
        [&](uint32_t i) { return samples.Get<&CpuSample::time_ns>(i); },
        [&](uint32_t i) {
          const Owned<CpuSample> sample = samples[i];
          if (sample.time_ns > to_ns) return;
          Ran& ran = threads[sample.tid];
          const uint64_t ns = PeriodOf(sample);
          ran.ns += ns;
          ran.times[InPython(paths_.Of(sample))] += ns;
          if (sample.python_stack) ran.python_stacks[sample.python_stack] += ns;
        });
    Ran waited;
    const auto& waits = analysis_.model.events.off_cpu_waits;
    ForEachIn(
        waits_, launch.tid, from_ns, to_ns, [&](uint32_t i) { return waits[i].end_ns; },
        [&](uint32_t i) {
          const uint64_t ns = OverlapNs(waits[i], Interval{from_ns, to_ns});
          waited.ns += ns;
          waited.times[InPython(paths_.OfWait(waits[i]))] += ns;
        });
    Ran& own = threads[launch.tid];
    // A few samples of a thread that did not run most of the time do not say why; what the launch
    // of the late kernel was called from does a little.
    const bool is_sampled = period_ns_ != 0 && lateness_ns >= 2 * period_ns_;
    if (is_sampled && 2 * own.ns < lateness_ns) {
      const Ran* other = &threads[launch.pid];
      for (const auto& [tid, ran] : threads) {
        if (2 * other->ns < lateness_ns && ran.ns > other->ns) other = &ran;
      }
      if (2 * other->ns >= lateness_ns) return OfRan(LateCause::kCpu, *other);
      if (waited.ns == 0) return {LateCause::kNotRunning, OfLaunch(launch)};
    }
    if (own.ns == 0 && waited.ns == 0) return {LateCause::kUnknown, OfLaunch(launch)};
    return waited.ns > own.ns ? OfRan(LateCause::kNotRunning, waited) : OfRan(LateCause::kCpu, own);
  }

  // With the innermost function that has most of the time.
  Cause OfRan(LateCause cause, const Ran& ran) const {
    PathId path = MostOf(paths_.tree(), ran.times);
    if (!path || !paths_.tree()[path].parent) {
      path = std::max_element(ran.times.begin(), ran.times.end(), [](const auto& a, const auto& b) {
               return a.second < b.second;
             })->first;
    }
    return {cause, path, ran.python_stacks};
  }

  template <typename TimeOf, typename Use>
  static void ForEachIn(const std::unordered_map<uint32_t, std::vector<uint32_t>>& by_id,
                        uint32_t id, uint64_t from_ns, uint64_t to_ns, TimeOf&& time_of,
                        Use&& use) {
    const auto found = by_id.find(id);
    if (found == by_id.end()) return;
    const std::vector<uint32_t>& places = found->second;
    auto at = std::lower_bound(places.begin(), places.end(), from_ns,
                               [&](uint32_t i, uint64_t ns) { return time_of(i) < ns; });
    // Waits are in order of their start: the one around the end is the last of them.
    for (; at != places.end(); ++at) {
      use(*at);
      if (time_of(*at) >= to_ns) break;
    }
  }

  uint64_t PeriodOf(const CpuSample& sample) const {
    if (sample.weight != 0) return sample.weight;
    const auto period = periods_.find(sample.source);
    return period == periods_.end() || period->second == 0 ? 1 : period->second;
  }

  Analysis& analysis_;
  const Collectives& collectives_;
  CallPaths& paths_;
  ReadablePaths readable_;
  GpuLeaves leaves_;
  std::unordered_map<uint32_t, uint64_t> periods_;  // by source
  uint64_t period_ns_ = 0;                          // of a clock; 0: there is none
  // In order of time.
  std::map<Member, std::vector<uint32_t>> work_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> samples_;  // by process
  std::unordered_map<uint32_t, std::vector<uint32_t>> waits_;    // by thread
};

constexpr size_t kMostRanks = 4;

// "Rank 3", "Ranks 1, 2 and 5 more".
std::string RanksText(const Job& job, const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanks); ++i) {
    AppendFormat(text, "{}{}", i == 0 ? "" : ", ", job.ranks()[ranks[i]].number);
  }
  if (ranks.size() > kMostRanks) AppendFormat(text, " and {} more", ranks.size() - kMostRanks);
  return text;
}

class StuckText {
 public:
  explicit StuckText(Analysis& analysis)
      : analysis_(analysis), paths_(analysis, {}), readable_(analysis, paths_.tree()) {}

  std::string Of(const StuckCollective& stuck, const Collective& collective, uint64_t until_ns) {
    const Job& job = analysis_.job;
    std::string ranks = RanksText(job, stuck.waiting);
    ranks.front() = 'R';
    std::string text = Format("{} waited in {} #{} of communicator {:#x} for {}", ranks,
                              collective.operation, collective.sequence, collective.communicator,
                              HumanDuration(until_ns - std::min(until_ns, stuck.called_ns)));
    for (const CollectivePart& part : collective.parts) {
      if (part.rank != stuck.waiting.front()) continue;
      AppendFormat(text, ", in {}", PlaceOf(part.rank, ThreadOf(part)));
    }
    if (stuck.absent.empty()) {
      const uint64_t others =
          collective.ranks - std::min<uint64_t>(collective.ranks, collective.parts.size());
      return others == 0 ? text + "; all of its ranks have called it."
                         : Format("{}; {} of its ranks {} not in this capture.", text, others,
                                  others == 1 ? "is" : "are");
    }
    AppendFormat(text, "; {} {} not called it:", RanksText(job, stuck.absent),
                 stuck.absent.size() == 1 ? "has" : "have");
    for (size_t i = 0; i < std::min(stuck.absent.size(), kMostRanks); ++i) {
      const uint32_t rank = stuck.absent[i];
      AppendFormat(text, "{} rank {} was in {}", i == 0 ? "" : ",", job.ranks()[rank].number,
                   PlaceOf(rank, 0));
    }
    return text + ".";
  }

 private:
  // `tid` 0: the main thread.
  std::string PlaceOf(uint32_t rank, uint32_t tid) {
    const uint32_t pid = analysis_.job.ranks()[rank].pid;
    return LastPlaceOf(analysis_, paths_, readable_, pid, tid == 0 ? pid : tid);
  }
  // Returns the thread that called it, as the recorder sees it; 0: not known.
  uint32_t ThreadOf(const CollectivePart& part) const {
    if (part.range == CollectivePart::kNone) return 0;
    return analysis_.nvtx.all()[part.range].event->tid;
  }

  Analysis& analysis_;
  CallPaths paths_;
  ReadablePaths readable_;
};

}  // namespace

std::vector<Straggler> FindStragglers(Analysis& analysis, const Collectives& collectives,
                                      CallPaths& paths) {
  return StragglerFinder(analysis, collectives, paths).Find();
}

std::vector<StuckCollective> FindStuckCollectives(const Collectives& collectives) {
  struct Communicator {
    std::set<uint32_t> ranks = {};
    std::map<uint64_t, size_t> by_sequence = {};
  };
  std::map<uint64_t, Communicator> communicators;
  for (size_t i = 0; i < collectives.all.size(); ++i) {
    const Collective& collective = collectives.all[i];
    if (collective.match != CollectiveMatch::kByNvtx || collective.operation == "SendRecv")
      continue;
    Communicator& of = communicators[collective.communicator];
    of.by_sequence[collective.sequence] = i;
    for (const CollectivePart& part : collective.parts) of.ranks.insert(part.rank);
  }
  std::vector<StuckCollective> all;
  for (const auto& [hash, communicator] : communicators) {
    // The newest first: what none of the ranks has left, until one that all have.
    std::optional<StuckCollective> stuck;
    for (auto at = communicator.by_sequence.rbegin(); at != communicator.by_sequence.rend(); ++at) {
      const Collective& collective = collectives.all[at->second];
      if (collective.arrived > 0) break;
      StuckCollective found{.collective = at->second};
      std::set<uint32_t> absent = communicator.ranks;
      for (const CollectivePart& part : collective.parts) {
        absent.erase(part.rank);
        found.waiting.push_back(part.rank);
        if (found.called_ns == 0 || part.called_ns < found.called_ns) {
          found.called_ns = part.called_ns;
        }
      }
      found.absent.assign(absent.begin(), absent.end());
      stuck = std::move(found);
    }
    if (stuck) all.push_back(*std::move(stuck));
  }
  std::stable_sort(all.begin(), all.end(), [](const StuckCollective& a, const StuckCollective& b) {
    return a.called_ns < b.called_ns;
  });
  return all;
}

std::string StuckCollectivesText(Analysis& analysis) {
  if (!MayHaveCollectives(analysis.model)) return "";
  const Collectives& collectives = CollectivesOf(analysis);
  const std::vector<StuckCollective> all = FindStuckCollectives(collectives);
  if (all.empty()) return "";
  const uint64_t until_ns = EndOf(analysis.model);
  const StuckCollective& first = all.front();
  if (first.called_ns + kDeliveredAfterNs > until_ns) return "";
  return StuckText(analysis).Of(first, collectives.all[first.collective], until_ns);
}

}  // namespace xpu
