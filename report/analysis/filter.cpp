#include "report/analysis/filter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "format/base/number.h"
#include "format/base/quote.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/base/intervals.h"
#include "report/base/text.h"
#include "report/trace/correlation.h"
#include "report/trace/correlation_counts.h"
#include "report/trace/user_probes.h"

namespace xpu {
namespace {

template <typename Value, typename Wanted>
bool Allows(const std::vector<Value>& allowed, const Wanted& value) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

// The names that a pattern is found in; each is looked at once. Without a pattern all are.
class NameSet {
 public:
  NameSet() = default;
  explicit NameSet(NamePattern pattern) : pattern_(std::move(pattern)) {}

  bool is_all() const { return !pattern_; }
  // `key` stands for the name that name_of() returns.
  template <typename NameOf>
  bool Has(uint32_t key, NameOf name_of) {
    if (is_all()) return true;
    const auto [known, is_new] = known_.try_emplace(key);
    if (is_new) known->second = pattern_->FoundIn(name_of());
    return known->second;
  }

 private:
  std::optional<NamePattern> pattern_;
  std::unordered_map<uint32_t, bool> known_;
};

Result<NameSet> NamesOf(const std::string& text, std::string_view what) {
  if (text.empty()) return NameSet();
  XPU_ASSIGN_OR_RETURN(NamePattern pattern, NamePattern::Compile(text, what));
  return NameSet(std::move(pattern));
}

// Decides which tracks, names, NVTX ranges and times of a trace are wanted. An option is asked
// about a track or a name once, however many events share it.
class PartFilter {
 public:
  PartFilter(const FilterOptions& options, const Analysis& analysis, NameSet kernels, NameSet apis,
             NameSet ranges)
      : options_(options),
        analysis_(analysis),
        names_(analysis, KernelNames::kFull),
        kernels_(std::move(kernels)),
        apis_(std::move(apis)),
        has_ranges_(!ranges.is_all()),
        chooses_tracks_(!options.pids.empty() || !options.tids.empty() || !options.comms.empty() ||
                        !options.ranks.empty() || !options.hosts.empty() ||
                        !options.containers.empty()),
        start_ns_(StartOf(analysis.model)) {
    const std::vector<NvtxRange>& all = analysis.nvtx.all();
    for (uint32_t i = 0; has_ranges_ && i < all.size(); ++i) {
      wanted_ranges_.push_back(ranges.Has(i, [&] { return analysis.nvtx.NameOf(all[i]); }));
    }
  }

  Selection Select() {
    Selection shown;
    if (!options_.time.is_all()) {
      shown.from_ns = AddSaturated(start_ns_, options_.time.start_ns);
      shown.to_ns = AddSaturated(start_ns_, options_.time.end_ns);
    }
    SelectCpu(shown.events);
    SelectGpus(shown.events);
    KeepIf(analysis_.nvtx.all(), shown.nvtx_ranges, [&](const NvtxRange& range) {
      return IsDuring(range.start_ns, range.end_ns) && IsOfThread(range.track) && IsInside(range);
    });
    KeepIf(analysis_.correlation.launches, shown.launches, [&](const Launch& launch) {
      return !HasWorkFilter() && IsDuring(launch.start_ns, launch.end_ns) &&
             IsOfThread(launch.track) && IsOfApi(launch) && IsInside(launch);
    });
    SelectWork(shown);
    shown.chooses_calls = IsAboutGpu() || has_ranges_;
    if (chooses_tracks_) {
      shown.pids.emplace();
      for (uint32_t i = 1; i < analysis_.tracks.size(); ++i) {
        if (IsOfThread(TrackId{i})) shown.pids->insert(analysis_.tracks[TrackId{i}].pid);
      }
    }
    if (has_ranges_) shown.outside = BetweenRanges();
    return shown;
  }

 private:
  // CPU samples and waits are about no GPU.
  void SelectCpu(EventSets& shown) {
    const LoadedEvents& events = analysis_.model.events;
    const auto is_wanted = [&](const auto& event) {
      const auto [start_ns, end_ns] = SpanOf(event);
      return !IsAboutGpu() && IsDuring(start_ns, end_ns) && IsOfThread(event.track) &&
             IsInside(event.pid, event.tid, start_ns);
    };
    KeepIf(events.cpu_samples, shown.cpu_samples, is_wanted);
    KeepIf(events.off_cpu_waits, shown.off_cpu_waits, is_wanted);
    const UserProbes probes(analysis_.model);  // the others' hits are calls by now
    KeepIf(events.probe_hits, shown.probe_hits,
           [&](const Owned<ProbeHit>& hit) { return probes.Of(hit) == nullptr || is_wanted(hit); });
    // When the times in a sum were is not known.
    KeepIf(events.off_cpu_sums, shown.off_cpu_sums, [&](const Owned<OffCpuSum>& sum) {
      return !IsAboutGpu() && options_.time.is_all() && !has_ranges_ && IsOfThread(sum.track);
    });
    // Which thread an overhead or a compilation was in is not known.
    const auto is_wanted_of_driver = [&](const auto& event) {
      if (IsAboutGpu() || !options_.tids.empty() || has_ranges_) return false;
      const ClockFit& clock = analysis_.clocks.Of(event.instance);
      const uint64_t start_ns = clock.ToMonotonic(event.start_ns);
      return IsDuring(start_ns, clock.ToMonotonic(event.end_ns)) &&
             IsOfThread(TrackOf(event.instance, start_ns));
    };
    KeepIf(events.overheads, shown.overheads, is_wanted_of_driver);
    KeepIf(events.jit_operations, shown.jit_operations, is_wanted_of_driver);
  }

  void SelectGpus(EventSets& shown) {
    const LoadedEvents& events = analysis_.model.events;
    // Memory is selected whenever it was: what is free at a time depends on all before.
    KeepIf(events.memory_operations, shown.memory_operations,
           [&](const MemoryOperation& operation) {
             return IsOfProcess(TrackOf(operation.instance, 0)) && IsOfDevice(operation);
           });
    KeepIf(events.allocator_events, shown.allocator_events,
           [&](const auto& event) { return IsOfProcess(event.track) && IsOfDevice(event); });
    // States and counters are those of whole GPUs, whichever process used them.
    KeepIf(events.gpu_states, shown.gpu_states, [&](const GpuState& state) {
      return IsDuring(state.time_ns, state.time_ns) && IsGpuDevice(state.gpu);
    });
    KeepIf(events.gpu_metric_samples, shown.gpu_metric_samples, [&](const auto& sample) {
      const ClockFit& clock = analysis_.clocks.Of(sample.instance);
      return IsGpuDevice(sample.gpu) &&
             IsDuring(clock.ToMonotonic(sample.start_ns), clock.ToMonotonic(sample.end_ns));
    });
    // Which kernels are wanted decides the rest (CodeSamples). The time of a sample is when CUPTI
    // counted what was sampled until then.
    KeepIf(events.gpu_samples, shown.gpu_samples, [&](const GpuSample& sample) {
      return IsOfProcess(TrackOf(sample.instance, sample.time_ns));
    });
  }

  // Selects the work that is wanted, and notes what idle time needs of the rest.
  void SelectWork(Selection& shown) {
    const GpuWorkList& all = analysis_.correlation.work;
    shown.work = EventSet::Where(all.size(), [&](size_t i) {
      const GpuWork& work = all[i];
      const bool is_during = IsDuring(work);
      const bool is_wanted = IsWanted(work);
      if (!(is_during && is_wanted) && work.keeps_gpu_busy()) {
        if (is_during) shown.filtered_work.Add(i);
        if (is_wanted) AddAround(all, static_cast<uint32_t>(i), shown);
      }
      return is_during && is_wanted;
    });
  }
  // At any time.
  bool IsWanted(const GpuWork& work) {
    if (!Allows(options_.streams, work.stream_id) || !Allows(options_.devices, work.gpu) ||
        !IsOfThread(work.track)) {
      return false;
    }
    if (!apis_.is_all() || has_ranges_) {
      if (work.launch == GpuWork::kNoLaunch) return false;
      const Launch& launch = analysis_.correlation.launches[work.launch];
      if (!IsOfApi(launch) || !IsInside(launch)) return false;
    }
    if (kernels_.is_all()) return true;
    if (work.kind != WorkKind::kKernel) return false;
    const StringId name = analysis_.model.events.kernels.Get<&Kernel::name>(work.index);
    return kernels_.Has(name.value, [&] { return names_.KernelName(name); });
  }

  // The time between the wanted ranges, of whichever thread.
  std::vector<Pause> BetweenRanges() const {
    std::vector<Interval> wanted;
    const std::vector<NvtxRange>& ranges = analysis_.nvtx.all();
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (!wanted_ranges_[i] || ranges[i].style == NvtxStyle::kMark) continue;
      wanted.push_back({ranges[i].start_ns, ranges[i].end_ns});
    }
    if (wanted.empty()) return {};
    Unite(wanted);
    return TimesBetween(wanted, wanted.front().start_ns, wanted.back().end_ns);
  }

  bool HasWorkFilter() const {
    return !options_.devices.empty() || !options_.streams.empty() || !kernels_.is_all();
  }
  bool IsAboutGpu() const { return HasWorkFilter() || !apis_.is_all(); }

  template <typename Event>
  bool IsOfDevice(const Event& event) const {
    return Allows(options_.devices, analysis_.gpus.Of(event.instance, event.device_id).number);
  }
  bool IsGpuDevice(uint32_t gpu_device) const {
    const std::optional<uint32_t> number = analysis_.gpus.NumberOf(gpu_device);
    return options_.devices.empty() || (number && Allows(options_.devices, *number));
  }

  // An instant is an interval without length.
  bool IsDuring(uint64_t begin_ns, uint64_t end_ns) const {
    const auto since_start = [this](uint64_t ns) { return ns - std::min(ns, start_ns_); };
    return since_start(end_ns) >= options_.time.start_ns &&
           since_start(begin_ns) < options_.time.end_ns;
  }

  // Work without times was at the time of its call, as far as that is known.
  bool IsDuring(const GpuWork& work) const {
    if (work.timed) return IsDuring(work.start_ns, work.end_ns);
    if (work.launch == GpuWork::kNoLaunch) return options_.time.is_all();
    return IsDuring(work.called_ns, work.called_ns);
  }

  // The track of the first thread of a process that uses CUDA.
  TrackId TrackOf(InstanceId instance, uint64_t time_ns) const {
    const uint32_t pid = analysis_.correlation.PidOf(instance);
    return analysis_.tracks.At(pid, pid, time_ns);
  }
  bool IsOfProcess(TrackId track) {
    if (!chooses_tracks_) return true;
    FindWantedTracks();
    return of_processes_[track.value];
  }
  bool IsOfThread(TrackId track) {
    if (!chooses_tracks_) return true;
    FindWantedTracks();
    return of_threads_[track.value];
  }
  void FindWantedTracks() {
    for (size_t i = of_threads_.size(); i < analysis_.tracks.size(); ++i) {
      const Track& track = analysis_.tracks[TrackId{static_cast<uint32_t>(i)}];
      of_processes_.push_back(WantsProcess(track));
      of_threads_.push_back(of_processes_.back() && WantsThread(track));
    }
  }
  // An id may be given as reports number it, or as its host does.
  static bool AllowsId(const std::vector<uint32_t>& wanted, uint32_t id) {
    return Allows(wanted, id) || Allows(wanted, HostId(id));
  }
  bool WantsProcess(const Track& track) const {
    const Containers& containers = analysis_.containers;
    const std::vector<std::string>& names = options_.containers;
    const auto is_called = [&](const std::string& name) {
      return track.container != nullptr && containers.IsCalled(*track.container, name);
    };
    return AllowsId(options_.pids, track.pid) &&
           Allows(options_.hosts, analysis_.job.hosts()[track.host]) &&
           Allows(options_.ranks, track.rank) &&
           (names.empty() || std::any_of(names.begin(), names.end(), is_called));
  }
  bool WantsThread(const Track& track) const {
    const std::string_view thread = analysis_.model.Text(track.name);
    return AllowsId(options_.tids, track.tid) &&
           (Allows(options_.comms, thread) ||
            (track.process && Allows(options_.comms, analysis_.processes.Name(track.process))));
  }

  // In a wanted range of NVTX; `where` is what NvtxRanges::At takes.
  template <typename... Where>
  bool IsInside(const Where&... where) {
    if (!has_ranges_) return true;
    const NvtxRanges::Around around = analysis_.nvtx.At(where...);
    const auto [known, is_new] =
        inside_.try_emplace(uint64_t{around.thread} << 32 | around.process);
    if (is_new) {
      const std::vector<uint32_t> ranges = analysis_.nvtx.RangesOf(around);
      known->second = std::any_of(ranges.begin(), ranges.end(),
                                  [this](uint32_t range) { return wanted_ranges_[range]; });
    }
    return known->second;
  }

  bool IsOfApi(const Launch& launch) {
    return apis_.Has(launch.name.value, [&] { return ApiNameOf(analysis_.api_names, launch); });
  }

  const FilterOptions& options_;
  const Analysis& analysis_;
  GpuNames names_;
  NameSet kernels_;  // by the id of the text
  NameSet apis_;     // by Launch::name
  const bool has_ranges_;
  const bool chooses_tracks_;
  const uint64_t start_ns_;
  std::vector<bool> wanted_ranges_;              // as NvtxRanges::all(); empty: all are
  std::unordered_map<uint64_t, bool> inside_;    // by both chains of NvtxRanges::Around
  std::vector<bool> of_processes_, of_threads_;  // by track
};

// Adds the launches of the selected work, and the calls that put its nodes into graphs. The latter
// do not count: a replay does not make them again. With --sample, what counts was chosen before.
void AddLaunchesOfWork(const Correlation& correlation, Selection& shown) {
  EventSet creations = EventSet::None();
  for (const GpuWork& work : Selected(correlation.work, shown.work)) {
    if (work.launch != GpuWork::kNoLaunch) shown.launches.Add(work.launch);
    if (work.creation != GpuWork::kNoLaunch) creations.Add(work.creation);
  }
  if (shown.scale == 1) shown.counted_launches = shown.launches;
  for (const uint32_t place : Selected(correlation.launches, creations).places()) {
    shown.launches.Add(place);
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

std::string CheckPattern(const std::string& text) {
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
  if (options.empty()) return Selection();
  XPU_ASSIGN_OR_RETURN(NameSet kernels, NamesOf(options.kernel, "--kernel"));
  XPU_ASSIGN_OR_RETURN(NameSet apis, NamesOf(options.api, "--api"));
  XPU_ASSIGN_OR_RETURN(NameSet ranges, NamesOf(options.nvtx, "--nvtx"));
  Selection shown =
      PartFilter(options, analysis, std::move(kernels), std::move(apis), std::move(ranges))
          .Select();
  shown.filter_text = options.Text();
  FinishSelection(analysis, shown);
  return shown;
}

void FinishSelection(const Analysis& analysis, Selection& shown) {
  AddLaunchesOfWork(analysis.correlation, shown);
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
  shown.counted_launches = shown.launches;
  Chance of_rest(rate, 2);
  const EventSet before = std::move(shown.work);
  shown.work = EventSet::Where(correlation.work.size(), [&](size_t i) {
    if (!before.Has(i)) return false;
    const uint32_t launch = correlation.work[i].launch;  // work goes with its call
    return launch == GpuWork::kNoLaunch ? of_rest.Next() : shown.counted_launches.Has(launch);
  });
  shown.scale = rate;
  AddLaunchesOfWork(correlation, shown);
  return Format("--sample 1/{}: {} of {} CPU samples, {} of {} GPU operations\n", rate,
                WithThousands(shown.events.cpu_samples.Count(samples.size())),
                WithThousands(all_samples),
                WithThousands(shown.work.Count(correlation.work.size())), WithThousands(all_work));
}

}  // namespace xpu
