#include "report/analysis/filter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/number.h"
#include "format/base/quote.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/model/recorded_time.h"
#include "report/output/text.h"
#include "report/trace/correlation.h"
#include "report/trace/correlation_counts.h"
#include "report/trace/user_probes.h"

namespace xpu {
namespace {

bool Allows(const std::vector<uint32_t>& allowed, uint32_t value) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

// The work and the calls that are wanted.
class PartFilter {
 public:
  PartFilter(const FilterOptions& options, const Analysis& analysis,
             std::optional<NamePattern> kernel, std::optional<NamePattern> api,
             const std::optional<NamePattern>& nvtx)
      : options_(options),
        analysis_(analysis),
        names_(analysis, KernelNames::kFull),
        kernel_(std::move(kernel)),
        api_(std::move(api)),
        start_ns_(StartOf(analysis.model)) {
    if (!nvtx) return;
    wanted_ranges_.emplace();
    for (const NvtxRange& range : analysis.nvtx.all()) {
      wanted_ranges_->push_back(nvtx->FoundIn(analysis.nvtx.NameOf(range)));
    }
  }

  bool Wants(const Owned<CpuSample>& sample) const {
    return !IsAboutGpu() && IsDuring(sample.time_ns, sample.time_ns) && IsOf(sample.owner()) &&
           IsInside(sample.pid, sample.tid, sample.time_ns);
  }
  bool Wants(const Owned<ProbeHit>& hit) const {
    return !IsAboutGpu() && IsDuring(hit.time_ns, hit.time_ns) && IsOf(hit.owner());
  }
  bool Wants(const Owned<OffCpuWait>& wait) const {
    return !IsAboutGpu() && IsDuring(wait.start_ns, wait.end_ns) && IsOf(wait.owner()) &&
           IsInside(wait.pid, wait.tid, wait.start_ns);
  }
  // When its times were is not known.
  bool Wants(const Owned<OffCpuSum>& sum) const {
    return !IsAboutGpu() && options_.time.is_all() && !wanted_ranges_ && IsOf(sum.owner());
  }
  bool Wants(const Launch& launch) const {
    if (HasWorkFilter() || !WantsApi(launch)) return false;
    return IsDuring(launch.start_ns, launch.end_ns) && IsOf(launch.owner()) && IsInside(launch);
  }
  bool IsDuring(const GpuWork& work) const {
    return work.timed ? IsDuring(work.start_ns, work.end_ns) : options_.time.is_all();
  }
  bool WantsAtAnyTime(const GpuWork& work) {
    if (!Allows(options_.streams, work.stream_id) || !Allows(options_.devices, work.gpu)) {
      return false;
    }
    if (api_ || wanted_ranges_) {
      if (work.launch == GpuWork::kNoLaunch) return false;
      const Launch& launch = analysis_.correlation.launches[work.launch];
      if (!WantsApi(launch) || !IsInside(launch)) return false;
    }
    return WantsKernel(work) && IsOf(work.owner());
  }
  // Of an overhead or a just-in-time compilation.
  template <typename Event>
  bool WantsDriverTime(const Event& event) const {
    if (IsAboutGpu() || !options_.tids.empty() || wanted_ranges_) return false;
    const ClockFit& clock = analysis_.clocks.Of(event.instance);
    const uint64_t begin_ns = clock.ToMonotonic(event.start_ns);
    if (!IsDuring(begin_ns, clock.ToMonotonic(event.end_ns))) return false;
    const uint32_t pid = analysis_.correlation.PidOf(event.instance);
    return IsOf(analysis_.processes.OwnerAt(pid, pid, begin_ns));
  }
  // Whenever it was: what is free at a time depends on all before.
  bool Wants(const MemoryOperation& operation) const {
    const uint32_t pid = analysis_.correlation.PidOf(operation.instance);
    return IsOfProcess(analysis_.processes.OwnerAt(pid, pid, 0)) &&
           Allows(options_.devices,
                  analysis_.gpus.Of(operation.instance, operation.device_id).number);
  }
  bool Wants(const Owned<AllocatorEvent>& event) const {  // all of its time, as above
    return IsOfProcess(event.owner()) &&
           Allows(options_.devices, analysis_.gpus.Of(event.instance, event.device_id).number);
  }
  // Of whole GPUs, whichever process used them.
  bool Wants(const GpuState& state) const {
    return IsDuring(state.time_ns, state.time_ns) && IsOfDevice(state.gpu);
  }
  bool Wants(const GpuMetricSample& sample) const {
    const ClockFit& clock = analysis_.clocks.Of(sample.instance);
    return IsOfDevice(sample.gpu) &&
           IsDuring(clock.ToMonotonic(sample.start_ns), clock.ToMonotonic(sample.end_ns));
  }
  // As far as it is known of one: which kernels are wanted decides the rest (CodeSamples). Its time
  // is when CUPTI counted what was sampled until then.
  bool Wants(const GpuSample& sample) const {
    const uint32_t pid = analysis_.correlation.PidOf(sample.instance);
    return IsOfProcess(analysis_.processes.OwnerAt(pid, pid, sample.time_ns));
  }
  bool Wants(const NvtxRange& range) const {
    return IsDuring(range.start_ns, range.end_ns) && IsOf(range.owner()) && IsInside(range);
  }

  // Of options that choose processes or threads, whatever the others leave of them.
  std::optional<std::set<uint32_t>> ChosenProcesses() const {
    if (options_.pids.empty() && options_.tids.empty() && options_.comms.empty() &&
        options_.ranks.empty() && options_.hosts.empty() && options_.containers.empty()) {
      return std::nullopt;
    }
    std::set<uint32_t> pids;
    const auto add = [&](const auto& list) {
      for (const auto& event : list) {
        if (!pids.contains(event.pid) && IsOf(event.owner())) pids.insert(event.pid);
      }
    };
    add(analysis_.correlation.launches);
    add(analysis_.model.events.cpu_samples);
    add(analysis_.model.events.off_cpu_waits);
    return pids;
  }

  // The time between the wanted ranges, of whichever thread.
  std::vector<Pause> BetweenRanges() const {
    std::vector<Pause> between;
    uint64_t until_ns = 0;
    const std::vector<NvtxRange>& ranges = analysis_.nvtx.all();
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (!(*wanted_ranges_)[i] || ranges[i].style == NvtxStyle::kMark) continue;
      if (until_ns != 0 && ranges[i].start_ns > until_ns) {
        between.push_back({until_ns, ranges[i].start_ns, {}});
      }
      until_ns = std::max(until_ns, ranges[i].end_ns);
    }
    return between;
  }

 private:
  bool HasWorkFilter() const {
    return !options_.devices.empty() || !options_.streams.empty() || kernel_;
  }
  bool IsAboutGpu() const { return HasWorkFilter() || api_; }

  bool IsOfDevice(uint32_t gpu_device) const {
    const std::optional<uint32_t> number = analysis_.gpus.NumberOf(gpu_device);
    return options_.devices.empty() || (number && Allows(options_.devices, *number));
  }

  // An instant is an interval without length.
  bool IsDuring(uint64_t begin_ns, uint64_t end_ns) const {
    const auto since_start = [this](uint64_t ns) { return ns - std::min(ns, start_ns_); };
    return since_start(end_ns) >= options_.time.start_ns &&
           since_start(begin_ns) < options_.time.end_ns;
  }

  bool IsOfContainer(const Owner& owner) const {
    const std::vector<std::string>& wanted = options_.containers;
    if (wanted.empty()) return true;
    const ContainerInfo* container = analysis_.containers.Of(owner.process, owner.time_ns);
    return container != nullptr &&
           std::any_of(wanted.begin(), wanted.end(), [&](const std::string& text) {
             return analysis_.containers.IsCalled(*container, text);
           });
  }

  // Whether the process, its rank, host and container are wanted.
  bool IsOfProcess(const Owner& owner) const {
    if (!Allows(options_.pids, owner.pid) || !IsOfContainer(owner)) return false;
    const Job& job = analysis_.job;
    const std::vector<std::string>& hosts = options_.hosts;
    if (!hosts.empty() &&
        std::find(hosts.begin(), hosts.end(), job.HostNameOf(owner.pid)) == hosts.end()) {
      return false;
    }
    if (options_.ranks.empty()) return true;
    const std::optional<uint32_t> rank = job.NumberOf(owner.process, owner.pid);
    return rank && Allows(options_.ranks, *rank);
  }

  bool IsOf(const Owner& owner) const {
    if (!Allows(options_.tids, owner.tid) || !IsOfProcess(owner)) return false;
    if (options_.comms.empty()) return true;
    const ProcessHistory& processes = analysis_.processes;
    const std::string_view thread = processes.ThreadName(owner);
    const std::string_view process = owner.process ? processes.Name(owner.process) : thread;
    return std::any_of(options_.comms.begin(), options_.comms.end(),
                       [&](const std::string& comm) { return comm == thread || comm == process; });
  }

  // In a wanted range of NVTX; `where` is what NvtxRanges::At takes.
  template <typename... Where>
  bool IsInside(const Where&... where) const {
    if (!wanted_ranges_) return true;
    const std::vector<uint32_t> ranges = analysis_.nvtx.RangesOf(analysis_.nvtx.At(where...));
    return std::any_of(ranges.begin(), ranges.end(),
                       [this](uint32_t range) { return (*wanted_ranges_)[range]; });
  }

  bool WantsApi(const Launch& launch) const {
    return !api_ || api_->FoundIn(ApiNameOf(analysis_.api_names, launch));
  }

  bool WantsKernel(const GpuWork& work) {
    if (!kernel_) return true;
    if (work.kind != WorkKind::kKernel) return false;
    const StringId name = analysis_.model.events.kernels.Get<&Kernel::name>(work.index);
    const auto [known, is_new] = wanted_kernels_.try_emplace(name);
    if (is_new) known->second = kernel_->FoundIn(names_.KernelName(name));
    return known->second;
  }

  const FilterOptions& options_;
  const Analysis& analysis_;
  GpuNames names_;
  std::optional<NamePattern> kernel_;
  std::optional<NamePattern> api_;
  const uint64_t start_ns_;
  std::optional<std::vector<bool>> wanted_ranges_;
  std::unordered_map<StringId, bool> wanted_kernels_;
};

Result<std::optional<NamePattern>> CompileIfGiven(const std::string& text, std::string_view what) {
  if (text.empty()) return std::optional<NamePattern>();
  XPU_ASSIGN_OR_RETURN(NamePattern pattern, NamePattern::Compile(text, what));
  return std::optional(std::move(pattern));
}

// Selects the work that is wanted, and notes what idle time needs of the rest.
class WorkChoice {
 public:
  WorkChoice(PartFilter& filter, const Analysis& analysis, Selection& shown)
      : filter_(filter), analysis_(analysis), shown_(shown) {}

  void Select() {
    const GpuWorkList& all = analysis_.correlation.work;
    shown_.work = EventSet::Where(all.size(), [&](size_t i) {
      const bool is_during = filter_.IsDuring(all[i]);
      const bool is_wanted = filter_.WantsAtAnyTime(all[i]);
      if (is_during && is_wanted) return true;
      Note(i, is_during, is_wanted);
      return false;
    });
  }

 private:
  void Note(size_t place, bool is_during, bool is_wanted) {
    const GpuWork& work = analysis_.correlation.work[place];
    if (!work.timed || work.end_ns <= work.start_ns) return;
    if (work.kind == WorkKind::kSynchronization) return;
    if (is_during) {
      shown_.filtered_work.Add(place);
    } else if (is_wanted) {
      AddAround(place, shown_.around[work.gpu]);
    }
  }
  void AddAround(size_t place, WorkAround& around) const {
    const GpuWorkList& all = analysis_.correlation.work;
    const GpuWork& work = all[place];
    if (work.start_ns >= shown_.to_ns) {
      const bool is_first =
          around.after == kNoWork || work.start_ns < all.Get<&GpuWork::start_ns>(around.after);
      if (is_first) around.after = static_cast<uint32_t>(place);
    } else if (around.before == kNoWork || work.end_ns > all.Get<&GpuWork::end_ns>(around.before)) {
      around.before = static_cast<uint32_t>(place);
    }
  }

  PartFilter& filter_;
  const Analysis& analysis_;
  Selection& shown_;
};

// The launches that the selected work refers to.
void AddLaunchesOfWork(const Correlation& correlation, Selection& shown) {
  for (const GpuWork& work : Selected(correlation.work, shown.work)) {
    if (work.launch != GpuWork::kNoLaunch) shown.launches.Add(work.launch);
    if (work.creation != GpuWork::kNoLaunch) shown.launches.Add(work.creation);
  }
}

// Beyond it nothing would be left, and the products of counts stay far from 2^64.
constexpr uint64_t kMaxRate = 1'000'000;

// SplitMix64's last step: the numbers of adjacent blocks have nothing in common.
uint64_t Scramble(uint64_t number) {
  number += 0x9e3779b97f4a7c15ull;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebull;
  return number ^ (number >> 31);
}

// One of each `rate` things that are asked about one after the other.
class Chance {
 public:
  Chance(uint64_t rate, uint64_t seed) : rate_(rate), seed_(Scramble(seed)) {}

  bool Next() {
    const uint64_t block = asked_ / rate_;
    return asked_++ % rate_ == Scramble(seed_ ^ block) % rate_;
  }

 private:
  const uint64_t rate_;
  const uint64_t seed_;
  uint64_t asked_ = 0;
};

// One of each `rate` of `list` that are in `set`.
template <typename List>
EventSet OneOf(uint64_t rate, uint64_t seed, const List& list, const EventSet& set) {
  Chance chance(rate, seed);
  return EventSet::Where(list.size(), [&](size_t i) { return set.Has(i) && chance.Next(); });
}

}  // namespace

void NamePattern::Free::operator()(regex_t* pattern) const {
  ::regfree(pattern);
  delete pattern;
}

Result<NamePattern> NamePattern::Compile(const std::string& text, std::string_view what) {
  auto pattern = std::make_unique<regex_t>();
  const int failure = ::regcomp(pattern.get(), text.c_str(), REG_EXTENDED | REG_NOSUB | REG_ICASE);
  if (failure != 0) {
    std::array<char, 128> reason{};
    ::regerror(failure, pattern.get(), reason.data(), reason.size());
    return Error{ErrorKind::kUsage,
                 Format("{}: invalid regular expression '{}': {}", what, text, reason.data()),
                 "the syntax is that of grep -E (POSIX extended)"};
  }
  return NamePattern(std::unique_ptr<regex_t, Free>(pattern.release()));
}

std::string WhyNoPattern(const std::string& text) {
  if (text.empty()) return "is empty";
  const Result<NamePattern> pattern = NamePattern::Compile(text, "it");
  return pattern.ok() ? std::string() : pattern.error().message;
}

bool NamePattern::FoundIn(const std::string& name) const {
  return ::regexec(pattern_.get(), name.c_str(), 0, nullptr, 0) == 0;
}

bool FilterOptions::empty() const {
  return pids.empty() && tids.empty() && comms.empty() && ranks.empty() && hosts.empty() &&
         containers.empty() && devices.empty() && streams.empty() && kernel.empty() &&
         api.empty() && nvtx.empty() && time.is_all();
}

std::string FilterOptions::Text() const {
  std::string text;
  const auto add = [&](std::string_view name, const auto& values) {
    std::string list;
    for (const auto& value : values) AppendFormat(list, "{}{}", list.empty() ? "" : ",", value);
    if (list.empty()) return;
    AppendFormat(text, "{}{} {}", text.empty() ? "" : " ", name, QuoteForShell(list));
  };
  add("--pid", pids);
  add("--tid", tids);
  add("--comm", comms);
  add("--rank", ranks);
  add("--host", hosts);
  add("--container", containers);
  add("--device", devices);
  add("--stream", streams);
  if (!kernel.empty()) add("--kernel", std::vector{kernel});
  if (!api.empty()) add("--api", std::vector{api});
  if (!nvtx.empty()) add("--nvtx", std::vector{nvtx});
  if (!time.is_all() && !time_text.empty()) add("--time", std::vector{time_text});
  if (!steps_text.empty()) {
    if (step_text != "auto" && !step_text.empty()) add("--step", std::vector{step_text});
    add("--step-range", std::vector{steps_text});
  }
  return text;
}

Result<Selection> SelectPart(const FilterOptions& options, const Analysis& analysis) {
  Selection shown;
  if (options.empty()) return shown;
  shown.filter_text = options.Text();
  XPU_ASSIGN_OR_RETURN(auto kernel, CompileIfGiven(options.kernel, "--kernel"));
  XPU_ASSIGN_OR_RETURN(auto api, CompileIfGiven(options.api, "--api"));
  XPU_ASSIGN_OR_RETURN(const auto nvtx, CompileIfGiven(options.nvtx, "--nvtx"));
  PartFilter filter(options, analysis, std::move(kernel), std::move(api), nvtx);
  const LoadedEvents& events = analysis.model.events;
  const auto wanted = [&](const auto& list) {
    return EventSet::Where(list.size(), [&](size_t i) { return filter.Wants(list[i]); });
  };
  const auto wanted_driver_time = [&](const auto& list) {
    return EventSet::Where(list.size(), [&](size_t i) { return filter.WantsDriverTime(list[i]); });
  };
  shown.events.cpu_samples = wanted(events.cpu_samples);
  const UserProbes probes(analysis.model);  // the others' hits are calls by now
  shown.events.probe_hits = EventSet::Where(events.probe_hits.size(), [&](size_t i) {
    const Owned<ProbeHit>& hit = events.probe_hits[i];
    return probes.Of(hit) == nullptr || filter.Wants(hit);
  });
  shown.events.off_cpu_waits = wanted(events.off_cpu_waits);
  shown.events.off_cpu_sums = wanted(events.off_cpu_sums);
  shown.events.overheads = wanted_driver_time(events.overheads);
  shown.events.jit_operations = wanted_driver_time(events.jit_operations);
  shown.events.memory_operations = wanted(events.memory_operations);
  shown.events.gpu_states = wanted(events.gpu_states);
  shown.events.gpu_metric_samples = wanted(events.gpu_metric_samples);
  shown.events.gpu_samples = wanted(events.gpu_samples);
  shown.events.allocator_events = wanted(events.allocator_events);
  shown.nvtx_ranges = wanted(analysis.nvtx.all());
  if (!options.time.is_all()) {
    const uint64_t start_ns = StartOf(analysis.model);
    shown.from_ns = AddSaturated(start_ns, options.time.start_ns);
    shown.to_ns = AddSaturated(start_ns, options.time.end_ns);
  }
  shown.pids = filter.ChosenProcesses();
  WorkChoice(filter, analysis, shown).Select();
  if (nvtx) shown.outside = filter.BetweenRanges();
  shown.launches = wanted(analysis.correlation.launches);
  FinishSelection(analysis, shown);
  return shown;
}

void FinishSelection(const Analysis& analysis, Selection& shown) {
  AddLaunchesOfWork(analysis.correlation, shown);
  shown.scaled_launches = shown.launches;
  shown.counts =
      CountCorrelation(analysis.model, analysis.graph_nodes, analysis.correlation, shown);
}

Result<uint64_t> ParseSampleRate(std::string_view text) {
  const uint64_t rate =
      text.starts_with("1/") ? ParseNumber<uint64_t>(text.substr(2)).value_or(0) : 0;
  if (rate == 0 || rate > kMaxRate) {
    return Error{ErrorKind::kUsage,
                 Format("'{}': expected 1/N, with N from 1 to {}", text, kMaxRate),
                 "1/10 uses 1 in 10 samples and calls"};
  }
  return rate;
}

std::string SelectOneOf(uint64_t rate, const Trace& trace, Selection& shown) {
  if (rate <= 1) return {};
  const Correlation& correlation = trace.correlation;
  const SampleList& samples = trace.model.events.cpu_samples;
  const size_t all_samples = shown.events.cpu_samples.Count(samples.size());
  const size_t all_work = shown.work.Count(correlation.work.size());
  shown.events.cpu_samples = OneOf(rate, 0, samples, shown.events.cpu_samples);
  shown.launches = OneOf(rate, 1, correlation.launches, shown.launches);
  shown.scaled_launches = shown.launches;
  Chance of_rest(rate, 2);
  const EventSet before = std::move(shown.work);
  shown.work = EventSet::Where(correlation.work.size(), [&](size_t i) {
    if (!before.Has(i)) return false;
    const uint32_t launch = correlation.work[i].launch;  // work goes with its call
    return launch == GpuWork::kNoLaunch ? of_rest.Next() : shown.scaled_launches.Has(launch);
  });
  AddLaunchesOfWork(correlation, shown);
  shown.scale = rate;
  return Format("--sample 1/{}: {} of {} CPU samples, {} of {} GPU operations\n", rate,
                WithThousands(shown.events.cpu_samples.Count(samples.size())),
                WithThousands(all_samples),
                WithThousands(shown.work.Count(correlation.work.size())), WithThousands(all_work));
}

}  // namespace xpu
