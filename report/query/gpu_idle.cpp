#include "report/query/gpu_idle.h"

#include <array>
#include <string>
#include <tuple>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/sort_runs.h"

namespace xpu {
namespace {

// Functions in which threads of a pool wait for work without giving up their CPU.
constexpr std::array<std::string_view, 3> kSpinning = {"blas_thread_server", "sched_yield",
                                                       "__sched_yield"};
// Libraries whose own code does nothing but wait: work is in functions of the program.
constexpr std::array<std::string_view, 3> kPools = {"libgomp", "libiomp5", "libomp"};
constexpr std::string_view kUndividedFrame = "[not divided]";

// The samples that the idle time of a program needs at most: each one for each of its GPUs, and
// those around each gap that no thread of its own explains.
constexpr uint64_t kGpusOfSample = 16;
constexpr uint64_t kSamplesOfWork = 4;
constexpr uint64_t kFewSamples = uint64_t{1} << 16;

// More than programs have; a damaged capture may name a process among its own ancestors.
constexpr size_t kMostAncestors = 64;

bool IsSpinning(const NamedFrame& frame) {
  return std::find(kSpinning.begin(), kSpinning.end(), frame.name) != kSpinning.end() ||
         std::any_of(kPools.begin(), kPools.end(),
                     [&](std::string_view library) { return frame.module.starts_with(library); });
}

std::string NameOfPart(const Analysis& analysis, const IdlePart& part, const CallTree& tree,
                       PathId path) {
  const auto api_of = [&](uint32_t launch) {
    return ApiNameOf(analysis.api_names, analysis.correlation.launches[launch]);
  };
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kOtherThread:
      return analysis.frames[tree[path].frame].Label();
    case IdlePart::Cause::kWait:
      return part.launch == GpuWork::kNoLaunch
                 ? Format("{} in a synchronization", kNoSampleFrame)
                 : Format("{} in {}", kNoSampleFrame, api_of(part.launch));
    case IdlePart::Cause::kLaunch:
      return Format("{} before {}", kNoSampleFrame, api_of(part.launch));
    case IdlePart::Cause::kQueued:
      return "[launched before]";
    case IdlePart::Cause::kUndivided:
      return std::string(kUndividedFrame);
    case IdlePart::Cause::kUnknown:
      break;
  }
  return Format("{} before an unknown launch", kNoSampleFrame);
}

}  // namespace

IdleSamples::IdleSamples(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis),
      paths_(paths),
      all_(analysis.model.events.cpu_samples),
      period_ns_(SampleUnitNs(analysis.model, analysis.shown)),
      samples_left_(kFewSamples + kGpusOfSample * all_.size() +
                    kSamplesOfWork * analysis.correlation.work.size()) {
  for (const uint32_t place : analysis.SamplesOfSources().places()) {
    threads_[all_[place].owner().thread()].push_back(place);
  }
}

// A thread that moves to another CPU meets its clock at another time, up to two periods later.
IdleSamples::Stretch IdleSamples::AroundOf(const Places& thread, size_t at) const {
  const uint64_t time_ns = TimeOf(thread[at]);
  const uint64_t half_ns = period_ns_ / 2;
  Stretch around = {time_ns - std::min(time_ns, half_ns), AddSaturated(time_ns, half_ns)};
  if (at > 0) {
    const uint64_t apart_ns = time_ns - TimeOf(thread[at - 1]);
    if (apart_ns / 2 <= period_ns_) around.start_ns = time_ns - apart_ns / 2;
  }
  if (at + 1 < thread.size()) {
    const uint64_t apart_ns = TimeOf(thread[at + 1]) - time_ns;
    if (apart_ns / 2 <= period_ns_) around.end_ns = time_ns + (apart_ns - apart_ns / 2);
  }
  return around;
}

void IdleSamples::OfThread(const Owner& owner, Stretch stretch, std::vector<Share>& shares,
                           std::vector<Stretch>& rest) {
  Count(1);
  const auto found = threads_.find(owner.thread());
  if (found == threads_.end() || IsExhausted()) return rest.push_back(stretch);
  const Places& thread = found->second;
  const auto later = std::lower_bound(
      thread.begin(), thread.end(), stretch.start_ns,
      [this](uint32_t sample, uint64_t time_ns) { return TimeOf(sample) < time_ns; });
  size_t at = static_cast<size_t>(later - thread.begin());
  if (at > 0) --at;
  const size_t first = at;
  uint64_t until_ns = stretch.start_ns;
  for (; at < thread.size(); ++at) {
    const Stretch around = AroundOf(thread, at);
    if (around.start_ns >= stretch.end_ns) break;
    const uint64_t start_ns = std::max(until_ns, around.start_ns);
    const uint64_t end_ns = std::min(stretch.end_ns, around.end_ns);
    if (end_ns <= start_ns) continue;
    if (start_ns > until_ns) rest.push_back({until_ns, start_ns});
    shares.push_back({thread[at], end_ns - start_ns});
    until_ns = end_ns;
  }
  Count(at - first);
  if (until_ns < stretch.end_ns) rest.push_back({until_ns, stretch.end_ns});
}

const IdleSamples::Places& IdleSamples::BelowProcess(ProcessId process) {
  const auto [below, is_new] = below_.try_emplace(process);
  if (!is_new) return below->second;
  if (threads_below_.empty()) {
    for (const auto& [thread, places] : threads_) {
      ProcessId of = thread.first;
      for (size_t depth = 0; of && depth < kMostAncestors; ++depth) {
        std::vector<const Places*>& all = threads_below_[of];
        if (all.empty() || all.back() != &places) all.push_back(&places);
        of = analysis_.processes[of].parent;
      }
    }
  }
  for (const Places* places : threads_below_[process]) {
    below->second.insert(below->second.end(), places->begin(), places->end());
  }
  std::sort(below->second.begin(), below->second.end());
  return below->second;
}

// The innermost function of user space that is not the C library's decides.
bool IdleSamples::Spins(uint32_t sample) {
  const CallTree& tree = paths_.tree();
  PathId path = paths_.Of(all_[sample]);
  const auto [known, is_new] = spins_.try_emplace(path.value, false);
  if (!is_new) return known->second;
  for (; path; path = tree[path].parent) {
    const NamedFrame& frame = analysis_.frames[tree[path].frame];
    if (IsSpinning(frame)) return known->second = true;
    if (frame.origin != FrameOrigin::kKernel && !frame.module.starts_with("libc.so")) break;
  }
  return false;
}

uint64_t IdleSamples::SharesOfOtherThreads(const Owner& owner, Stretch stretch,
                                           std::vector<Share>& shares) {
  if (!owner.process) return stretch.end_ns - stretch.start_ns;
  const uint64_t half_ns = period_ns_ / 2;
  const Places& below = BelowProcess(owner.process);
  const auto first = std::lower_bound(below.begin(), below.end(), stretch.start_ns,
                                      [&](uint32_t sample, uint64_t time_ns) {
                                        return AddSaturated(TimeOf(sample), half_ns) <= time_ns;
                                      });
  // Threads that ran at once share the time in which any did.
  const size_t begin = shares.size();
  uint64_t sum_ns = 0;
  uint64_t covered_ns = 0;
  uint64_t until_ns = stretch.start_ns;
  auto at = first;
  for (; at != below.end(); ++at) {
    const uint64_t time_ns = TimeOf(*at);
    const uint64_t start_ns = std::max(stretch.start_ns, time_ns - std::min(time_ns, half_ns));
    const uint64_t end_ns = std::min(stretch.end_ns, AddSaturated(time_ns, half_ns));
    if (start_ns >= stretch.end_ns) break;
    if (end_ns <= start_ns || all_.Get<&CpuSample::tid>(*at) == owner.tid || Spins(*at)) continue;
    shares.push_back({*at, end_ns - start_ns});
    sum_ns += end_ns - start_ns;
    covered_ns += end_ns - std::min(end_ns, std::max(start_ns, until_ns));
    until_ns = std::max(until_ns, end_ns);
  }
  Count(static_cast<size_t>(at - first));
  // Rounded so that the shares add up.
  uint64_t weight_ns = 0;
  uint64_t given_ns = 0;
  for (size_t i = begin; i < shares.size(); ++i) {
    weight_ns += shares[i].ns;
    const auto up_to =
        static_cast<uint64_t>(static_cast<unsigned __int128>(covered_ns) * weight_ns / sum_ns);
    shares[i].ns = up_to - given_ns;
    given_ns = up_to;
  }
  return stretch.end_ns - stretch.start_ns - covered_ns;
}

Owner OwnerOf(const Analysis& analysis, const IdleGap& gap) {
  const GpuWorkList& work = analysis.correlation.work;
  if (gap.after != kNoWork) return work[gap.after].owner();
  if (gap.filtered_work == kNoWork) return {};
  const GpuWork other = work[gap.filtered_work];
  return analysis.tracks.OwnerAt(other.pid, other.tid, other.start_ns);
}

std::vector<IdleGap> FindAllGaps(const Analysis& analysis) {
  std::vector<IdleGap> all;
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    VisitGaps(analysis, gpu, [&](const IdleGap& gap) { all.push_back(gap); });
  }
  return all;
}

IdleParts::IdleParts(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis), samples_(analysis, paths), uncounted_(analysis) {
  const GpuWorkList& all = analysis.correlation.work;  // whatever a filter leaves out
  for (uint32_t place = 0; place < all.size(); ++place) {
    const GpuWork& work = all[place];
    if (!IsTimedWait(analysis, work)) continue;
    std::optional<uint32_t> tid;
    if (work.launch != GpuWork::kNoLaunch) tid = work.tid;
    waits_[tid].push_back({work.start_ns, work.end_ns, place, work.launch});
  }
  for (auto& [tid, waits] : waits_) {
    SortRuns(waits, [](const Wait& a, const Wait& b) {
      return std::tie(a.start_ns, a.work) < std::tie(b.start_ns, b.work);
    });
    uint64_t until_ns = 0;
    std::erase_if(waits, [&](const Wait& wait) {
      return wait.end_ns <= std::exchange(until_ns, std::max(until_ns, wait.end_ns));
    });
  }
}

const std::vector<IdlePart>& IdleParts::Of(const IdleGap& gap) {
  parts_.clear();
  // Work that a filter leaves out may end a gap, as the first launch of the next step does.
  const uint32_t launch = gap.launch != GpuWork::kNoLaunch ? gap.launch : gap.filtered_launch;
  IdlePart otherwise{.gpu = gap.gpu, .cause = IdlePart::Cause::kUnknown, .launch = launch};
  const bool is_known = launch != GpuWork::kNoLaunch;
  if (is_known) otherwise.cause = IdlePart::Cause::kLaunch;
  if (is_known && analysis_.correlation.launches.Get<&Launch::end_ns>(launch) <= gap.start_ns) {
    otherwise.cause = IdlePart::Cause::kQueued;
    otherwise.ns = gap.ns;
    parts_.push_back(otherwise);
    return parts_;
  }
  const Owner owner = OwnerOf(analysis_, gap);
  uint64_t start_ns = gap.start_ns;
  const Uncounted& uncounted = *uncounted_.Of(gap.gpu);
  while (start_ns < gap.end_ns && !samples_.IsExhausted()) {
    const Pause pause = uncounted.NextAt(start_ns);
    if (pause.start_ns >= gap.end_ns) break;
    if (pause.start_ns > start_ns) AddThread(owner, {start_ns, pause.start_ns}, otherwise);
    start_ns = std::min(pause.end_ns, gap.end_ns);
  }
  if (samples_.IsExhausted()) {
    const uint64_t ns = gap.end_ns - start_ns - uncounted.Ns(start_ns, gap.end_ns);
    if (ns > 0) parts_.push_back({.gpu = gap.gpu, .cause = IdlePart::Cause::kUndivided, .ns = ns});
    return parts_;
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
    if (samples_.IsExhausted()) {
      parts_.push_back(
          {.gpu = otherwise.gpu, .cause = Cause::kUndivided, .ns = rest.end_ns - rest.start_ns});
      continue;
    }
    shares_.clear();
    otherwise.ns += samples_.SharesOfOtherThreads(owner, rest, shares_);
    add_samples(Cause::kOtherThread);
  }
  if (otherwise.ns > 0) parts_.push_back(otherwise);
}

// The first wait of the thread, or of one that is not known.
const IdleParts::Wait* IdleParts::WaitAround(const Owner& owner,
                                             IdleSamples::Stretch stretch) const {
  const Wait* first = nullptr;
  for (const std::optional<uint32_t> tid : {std::optional<uint32_t>(owner.tid), {}}) {
    const auto waits = waits_.find(tid);
    if (waits == waits_.end()) continue;
    const auto wait =
        std::lower_bound(waits->second.begin(), waits->second.end(), stretch.end_ns,
                         [](const Wait& one, uint64_t ns) { return one.end_ns < ns; });
    if (wait == waits->second.end() || wait->start_ns > stretch.start_ns) continue;
    if (first == nullptr ||
        std::tie(wait->start_ns, wait->work) < std::tie(first->start_ns, first->work)) {
      first = &*wait;
    }
  }
  return first;
}

IdlePaths::IdlePaths(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis),
      paths_(paths),
      no_sample_(analysis.frames.Intern(kNoSampleFrame)),
      queued_(analysis.frames.Intern("[launched before]")),
      unknown_(analysis.frames.Intern("[unknown launch]")),
      undivided_(analysis.frames.Intern(kUndividedFrame)) {}

PathId IdlePaths::Of(const IdlePart& part) {
  const Correlation& correlation = analysis_.correlation;
  CallTree& tree = paths_.tree();
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kOtherThread:
      return paths_.Of(analysis_.model.events.cpu_samples[part.sample]);
    case IdlePart::Cause::kWait:
      return tree.Child(part.launch == GpuWork::kNoLaunch
                            ? paths_.OfWork(correlation.work[part.wait])
                            : paths_.OfLaunch(correlation.launches[part.launch]),
                        no_sample_);
    case IdlePart::Cause::kLaunch:
      return BelowNoSample(correlation.launches[part.launch]);
    case IdlePart::Cause::kQueued:
      return tree.Child(PathId{}, queued_);
    case IdlePart::Cause::kUndivided:
      return tree.Child(PathId{}, undivided_);
    case IdlePart::Cause::kUnknown:
      break;
  }
  return tree.Child(tree.Child(PathId{}, no_sample_), unknown_);
}

Owner IdlePaths::OwnerOf(const IdlePart& part) const {
  const Correlation& correlation = analysis_.correlation;
  switch (part.cause) {
    case IdlePart::Cause::kSample:
    case IdlePart::Cause::kOtherThread:
      return analysis_.model.events.cpu_samples[part.sample].owner();
    case IdlePart::Cause::kWait:
      return correlation.work[part.wait].owner();
    case IdlePart::Cause::kLaunch:
      return correlation.launches[part.launch].owner();
    case IdlePart::Cause::kQueued:
    case IdlePart::Cause::kUndivided:
    case IdlePart::Cause::kUnknown:
      break;
  }
  return {};
}

PathId IdlePaths::BelowNoSample(const Launch& launch) {
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

std::vector<Statistics> IdleTimes(Analysis& analysis, const std::vector<GpuBusy>& busy) {
  CallPaths paths(analysis, {});
  paths.NameAhead({.samples = true, .others_samples = true});
  IdlePaths idle(analysis, paths);
  const auto idle_gpus =
      std::count_if(busy.begin(), busy.end(), [](const GpuBusy& gpu) { return gpu.idle_ns() > 0; });
  IdleParts parts(analysis, paths);
  NamedValues values;
  for (const GpuBusy& gpu : busy) {
    VisitGaps(analysis, gpu, [&](const IdleGap& gap) {
      for (const IdlePart& part : parts.Of(gap)) {
        const bool is_sample =
            part.cause == IdlePart::Cause::kSample || part.cause == IdlePart::Cause::kOtherThread;
        const std::string name =
            NameOfPart(analysis, part, paths.tree(), is_sample ? idle.Of(part) : PathId{});
        values[idle_gpus > 1 ? Format("GPU {}: {}", part.gpu, name) : name].push_back(part.ns);
      }
    });
  }
  return SummarizeByTotal(values);
}

}  // namespace xpu
