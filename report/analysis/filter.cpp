#include "report/analysis/filter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/number.h"
#include "format/base/quote.h"
#include "format/base/text.h"
#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/model/recorded_time.h"
#include "report/model/saturated.h"
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

  bool Wants(const CpuSample& sample) const {
    return !IsAboutGpu() && IsDuring(sample.time_ns, sample.time_ns) &&
           IsOf(OwnerOf(analysis_, sample)) && IsInside(sample.pid, sample.tid, sample.time_ns);
  }
  bool Wants(const ProbeHit& hit) const {
    return !IsAboutGpu() && IsDuring(hit.time_ns, hit.time_ns) && IsOf(OwnerOf(analysis_, hit));
  }
  bool Wants(const Launch& launch) const {
    if (HasWorkFilter() || !WantsApi(launch)) return false;
    return IsDuring(launch.start_ns, launch.end_ns) && IsOf(OwnerOf(analysis_, launch)) &&
           IsInside(launch);
  }
  bool IsDuring(const GpuWork& work) const {
    return work.timed ? IsDuring(work.start_ns, work.end_ns) : options_.time.is_all();
  }
  bool WantsAtAnyTime(const GpuWork& work) {
    if (!Allows(options_.streams, work.stream_id)) return false;
    if (!Allows(options_.devices, analysis_.gpus.Of(work.instance, work.device_id).number)) {
      return false;
    }
    if (api_ || wanted_ranges_) {
      if (work.launch == GpuWork::kNoLaunch) return false;
      const Launch& launch = analysis_.correlation.launches[work.launch];
      if (!WantsApi(launch) || !IsInside(launch)) return false;
    }
    return WantsKernel(work) && IsOf(OwnerOf(analysis_, work));
  }
  // Of an overhead or a just-in-time compilation.
  template <typename Event>
  bool WantsDriverTime(const Event& event) const {
    if (IsAboutGpu() || !options_.tids.empty() || wanted_ranges_) return false;
    const ClockFit& clock = analysis_.clocks.Of(event.instance);
    const uint64_t begin_ns = clock.ToMonotonic(event.start_ns);
    if (!IsDuring(begin_ns, clock.ToMonotonic(event.end_ns))) return false;
    const uint32_t pid = PidOf(analysis_, event.instance);
    return IsOf({.process = analysis_.processes.At(pid, begin_ns),
                 .pid = pid,
                 .tid = pid,
                 .time_ns = begin_ns});
  }
  // Whenever it was: what is free at a time depends on all before.
  bool Wants(const MemoryOperation& operation) const {
    const uint32_t pid = PidOf(analysis_, operation.instance);
    return Allows(options_.pids, pid) &&
           Allows(options_.devices,
                  analysis_.gpus.Of(operation.instance, operation.device_id).number);
  }
  bool Wants(const NvtxRange& range) const {
    return IsDuring(range.start_ns, range.end_ns) && IsOf(OwnerOf(analysis_, range)) &&
           IsInside(range);
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

  // An instant is an interval without length.
  bool IsDuring(uint64_t begin_ns, uint64_t end_ns) const {
    const auto since_start = [this](uint64_t ns) { return ns - std::min(ns, start_ns_); };
    return since_start(end_ns) >= options_.time.begin_ns &&
           since_start(begin_ns) < options_.time.end_ns;
  }

  bool IsOf(const Owner& owner) const {
    if (!Allows(options_.pids, owner.pid) || !Allows(options_.tids, owner.tid)) return false;
    if (options_.comms.empty()) return true;
    const ProcessTable& processes = analysis_.processes;
    const std::string_view thread = processes.ThreadName(owner.process, owner.tid, owner.time_ns);
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

// Moves the samples that are not wanted.
void LeaveOutSamples(const PartFilter& filter, Model& model) {
  SampleList left_out;
  std::erase_if(model.events.cpu_samples.rows(), [&](const CpuSample& sample) {
    if (filter.Wants(sample)) return false;
    left_out.push_back(sample);
    return true;
  });
  model.samples_left_out = std::move(left_out);
}

// Takes the work out that is not wanted, and keeps what idle time needs of it.
class WorkChoice {
 public:
  WorkChoice(PartFilter& filter, Analysis& analysis) : filter_(filter), analysis_(analysis) {}

  bool Wants(const GpuWork& work) {
    const bool is_during = filter_.IsDuring(work);
    const bool is_wanted = filter_.WantsAtAnyTime(work);
    if (is_during && is_wanted) return true;
    if (!work.timed || work.end_ns <= work.start_ns) return false;
    if (work.kind == WorkKind::kSynchronization) {
      if (IsCpuWait(analysis_.model.events, work)) {
        analysis_.waits_left_out.push_back(WithLaunch(work));
      }
    } else {
      const uint32_t gpu = analysis_.gpus.Of(work.instance, work.device_id).number;
      if (is_during) {
        AddElsewhere(gpu, work);
      } else if (is_wanted) {
        AddAround(work, analysis_.around[gpu]);
      }
    }
    return false;
  }

 private:
  WorkLeftOut WithLaunch(const GpuWork& work) const {
    WorkLeftOut left_out{work};
    if (work.launch != GpuWork::kNoLaunch) {
      left_out.launch = analysis_.correlation.launches[work.launch];
    }
    left_out.work.launch = left_out.work.creation = GpuWork::kNoLaunch;
    return left_out;
  }
  void AddElsewhere(uint32_t gpu, const GpuWork& work) const {
    const Owner owner = OwnerOf(analysis_, work);
    WorkElsewhere& elsewhere = analysis_.work_elsewhere.emplace_back();
    elsewhere = {gpu, owner.pid, owner.tid, work.start_ns, work.end_ns};
    if (work.launch == GpuWork::kNoLaunch) return;
    elsewhere.launched_ns = analysis_.correlation.launches[work.launch].end_ns;
    elsewhere.launched_by = analysis_.correlation.launches[work.launch].kind;
  }
  void AddAround(const GpuWork& work, WorkAround& around) const {
    if (work.start_ns >= analysis_.shown_to_ns) {
      const bool is_first = !around.after || work.start_ns < around.after->work.start_ns;
      if (is_first) around.after = WithLaunch(work);
    } else if (!around.before || work.end_ns > around.before->work.end_ns) {
      around.before = WithLaunch(work);
    }
  }

  PartFilter& filter_;
  Analysis& analysis_;
};

// Beyond it nothing would be left, and the products of counts stay far from 2^64.
constexpr uint64_t kMaxRate = 1'000'000;

// SplitMix64's last step: the numbers of neighbouring blocks have nothing in common.
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

// Work goes with its call.
void ThinWork(uint64_t rate, Correlation& correlation) {
  Chance of_calls(rate, 1);
  std::vector<bool> keep;
  keep.reserve(correlation.launches.size());
  for (Launch& launch : correlation.launches) {
    launch.stands_for_others = of_calls.Next();
    keep.push_back(launch.stands_for_others);
  }
  Chance of_rest(rate, 2);
  std::erase_if(correlation.work, [&](const GpuWork& work) {
    return work.launch == GpuWork::kNoLaunch ? !of_rest.Next() : !keep[work.launch];
  });
  KeepLaunches(correlation, std::move(keep));
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
                 Format("{}: '{}' is no regular expression: {}", what, text, reason.data()),
                 "POSIX extended syntax, as grep -E has it"};
  }
  return NamePattern(std::unique_ptr<regex_t, Free>(pattern.release()));
}

bool NamePattern::FoundIn(const std::string& name) const {
  return ::regexec(pattern_.get(), name.c_str(), 0, nullptr, 0) == 0;
}

void KeepLaunches(Correlation& correlation, std::vector<bool> keep) {
  for (const GpuWork& work : correlation.work) {
    if (work.launch != GpuWork::kNoLaunch) keep[work.launch] = true;
    if (work.creation != GpuWork::kNoLaunch) keep[work.creation] = true;
  }
  LaunchList& launches = correlation.launches;
  std::vector<uint32_t> places(launches.size());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    places[i] = kept;
    if (!keep[i]) continue;
    if (kept != i) launches[kept] = launches[i];
    ++kept;
  }
  launches.resize(kept);
  for (GpuWork& work : correlation.work) {
    if (work.launch != GpuWork::kNoLaunch) work.launch = places[work.launch];
    if (work.creation != GpuWork::kNoLaunch) work.creation = places[work.creation];
  }
}

bool FilterOptions::empty() const {
  return pids.empty() && tids.empty() && comms.empty() && devices.empty() && streams.empty() &&
         kernel.empty() && api.empty() && nvtx.empty() && time.is_all();
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
  add("--device", devices);
  add("--stream", streams);
  if (!kernel.empty()) add("--kernel", std::vector{kernel});
  if (!api.empty()) add("--api", std::vector{api});
  if (!nvtx.empty()) add("--nvtx", std::vector{nvtx});
  if (!time.is_all() && !time_text.empty()) add("--time", std::vector{time_text});
  return text;
}

Status ApplyFilter(const FilterOptions& options, Analysis& analysis) {
  if (options.empty()) return Ok();
  analysis.part = options.Text();
  XPU_ASSIGN_OR_RETURN(auto kernel, CompileIfGiven(options.kernel, "--kernel"));
  XPU_ASSIGN_OR_RETURN(auto api, CompileIfGiven(options.api, "--api"));
  XPU_ASSIGN_OR_RETURN(const auto nvtx, CompileIfGiven(options.nvtx, "--nvtx"));
  PartFilter filter(options, analysis, std::move(kernel), std::move(api), nvtx);
  LoadedEvents& events = analysis.model.events;
  Correlation& correlation = analysis.correlation;
  LeaveOutSamples(filter, analysis.model);
  const UserProbes probes(analysis.model);  // the others' hits are calls by now
  std::erase_if(events.probe_hits.rows(),
                [&](const auto& hit) { return probes.Of(hit) != nullptr && !filter.Wants(hit); });
  const auto is_unwanted = [&](const auto& event) { return !filter.WantsDriverTime(event); };
  std::erase_if(events.overheads.rows(), is_unwanted);
  std::erase_if(events.jit_operations.rows(), is_unwanted);
  std::erase_if(events.memory_operations.rows(),
                [&](const auto& operation) { return !filter.Wants(operation); });
  for (NvtxRange& range : analysis.nvtx.all()) range.is_shown = filter.Wants(range);
  std::vector<bool> keep;
  keep.reserve(correlation.launches.size());
  for (const Launch& launch : correlation.launches) keep.push_back(filter.Wants(launch));
  if (!options.time.is_all()) {
    const uint64_t start_ns = StartOf(analysis.model);
    analysis.shown_from_ns = AddSaturated(start_ns, options.time.begin_ns);
    analysis.shown_to_ns = AddSaturated(start_ns, options.time.end_ns);
  }
  WorkChoice choice(filter, analysis);
  std::erase_if(correlation.work, [&](const GpuWork& work) { return !choice.Wants(work); });
  if (nvtx) analysis.outside = filter.BetweenRanges();
  KeepLaunches(correlation, std::move(keep));
  correlation.counts = {};
  correlation.worst_margin_ns = {};
  CountCorrelation(analysis.model, analysis.graph_nodes, correlation);
  return Ok();
}

Result<uint64_t> ParseSampleRate(std::string_view text) {
  const uint64_t rate =
      text.starts_with("1/") ? ParseNumber<uint64_t>(text.substr(2)).value_or(0) : 0;
  if (rate == 0 || rate > kMaxRate) {
    return Error{ErrorKind::kUsage, Format("'{}' is no part from 1/1 to 1/{}", text, kMaxRate),
                 "1/10 looks at one of 10"};
  }
  return rate;
}

std::string ThinOut(uint64_t rate, Analysis& analysis) {
  if (rate <= 1) return {};
  SampleList& samples = analysis.model.events.cpu_samples;
  const size_t all_samples = samples.size();
  const size_t all_work = analysis.correlation.work.size();
  Chance of_samples(rate, 0);
  std::erase_if(samples.rows(), [&](const CpuSample&) { return !of_samples.Next(); });
  ThinWork(rate, analysis.correlation);
  analysis.kept_of = rate;
  return Format("--sample 1/{}: {} of {} CPU samples, {} of {} GPU operations\n", rate,
                WithThousands(samples.size()), WithThousands(all_samples),
                WithThousands(analysis.correlation.work.size()), WithThousands(all_work));
}

}  // namespace xpu
