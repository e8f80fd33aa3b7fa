#include <algorithm>
#include <string_view>
#include <utility>

#include "format/base/text.h"
#include "report/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_idle.h"
#include "report/query/idle_causes.h"
#include "report/views/summary/summary_hints.h"

namespace xpu {
namespace {

constexpr double kMuchIdle = 0.3;
constexpr double kMostlyBusy = 0.8;
// Least share of the elapsed time for the steady state to be named first.
constexpr double kMuchSteady = 0.05;
// Least share of the elapsed time for start and end to be named: every program has some.
constexpr double kMuchOfRun = 0.05;
// Least share of the idle time for a cause to be named.
constexpr double kMuchOfIdle = 0.1;
// Longer gaps are not between two launches one after the other.
constexpr uint64_t kLaunchGapNs = 1'000'000;
constexpr uint64_t kManyGaps = 50;

class IdleHints {
 public:
  IdleHints(Analysis& analysis, const FilterOptions& filter)
      : analysis_(analysis),
        filter_(filter),
        start_ns_(StartOf(analysis.model)),
        elapsed_ns_(ElapsedNs(analysis, filter)),
        paths_(analysis, {}),
        idle_paths_(analysis, paths_),
        parts_(analysis, paths_) {}

  std::vector<Hint> Find(const GpuBusy& gpu) {
    gpu_ = &gpu;
    paths_.NameAhead({.samples = true, .others_samples = true, .launches = true});
    gaps_ = FindGaps(analysis_, gpu);
    phases_ = FindPhases(gpu, gaps_, analysis_.correlation.launches);
    AddStart();
    AddSteady();
    AddEnd();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.weight > b.weight; });
    std::vector<Hint> hints;
    for (Found& found : found_) hints.push_back(std::move(found.hint));
    return hints;
  }

 private:
  struct Found {
    Hint hint;
    double weight = 0;
  };

  void Add(double weight, std::string what, std::string next, std::string time = {}) {
    found_.push_back({{std::move(what), std::move(next), std::move(time)}, weight});
  }
  void AddWithSamples(double weight, std::string what, std::string_view when, const Owner& thread,
                      TimeRange stretch, std::string_view file);
  void AddStart();
  void AddSteady();
  void AddEnd();
  bool AddLaunching(const std::string& begin, uint64_t idle_ns, const std::string& time);
  // Adds the parts of gaps in a stretch of time, and returns how long the GPU was busy meanwhile.
  uint64_t AddGaps(uint64_t start_ns, uint64_t end_ns, IdleCauses& causes);
  void AddThread(const Owner& thread, uint64_t start_ns, uint64_t end_ns, IdleCauses& causes);
  std::string CausesText(IdleCauses& causes);
  std::string SteadyText(uint64_t part_ns) const;
  std::string TimeOf(TimeRange range) const;
  double Elapsed(uint64_t ns) const { return ShareOf(ns, elapsed_ns_); }

  Analysis& analysis_;
  const FilterOptions& filter_;
  const uint64_t start_ns_;
  const uint64_t elapsed_ns_;
  CallPaths paths_;
  IdlePaths idle_paths_;
  const GpuBusy* gpu_ = nullptr;
  IdleParts parts_;
  std::vector<IdleGap> gaps_;
  GpuPhases phases_;
  std::vector<Found> found_;
};

// "1.162s-11.9s", what --time takes, of a range on CLOCK_MONOTONIC.
std::string IdleHints::TimeOf(TimeRange range) const {
  return Format("{}-{}", range.start_ns == 0 ? "" : TimeSince(start_ns_, range.start_ns),
                range.end_ns == TimeRange::kNoEnd ? "" : TimeSince(start_ns_, range.end_ns));
}

// Adds a hint that shows what the CPU did in a stretch of time, for the thread alone where it ran:
// others that compute meanwhile would fill the page. Where nothing ran there are no samples, and no
// flame graph.
void IdleHints::AddWithSamples(double weight, std::string what, std::string_view when,
                               const Owner& thread, TimeRange stretch, std::string_view file) {
  const SampleList& all = analysis_.model.events.cpu_samples;
  if (analysis_.model.events.sample_sources.empty()) {
    AppendFormat(what, ". Record without --gpu-only to see what the CPU did {}.", when);
    return Add(weight, std::move(what), "");
  }
  bool ran = false;
  bool others_ran = false;
  for (const IdlePart& part : parts_.Of(thread, stretch.start_ns, stretch.end_ns)) {
    if (part.sample == kNoSample) continue;
    const uint64_t time_ns = all.Get<&CpuSample::time_ns>(part.sample);
    if (time_ns < stretch.start_ns || time_ns >= stretch.end_ns) continue;
    (part.cause == IdlePart::Cause::kSample ? ran : others_ran) = true;
  }
  if (!ran && (!others_ran || !filter_.tids.empty())) {
    return Add(weight, std::move(what) + ".", "");
  }
  AppendFormat(what, ". What the CPU did {}:", when);
  std::string command = Format("--flamegraph --mode cpu -o {}", file);
  if (ran && filter_.tids.empty()) AppendFormat(command, " --tid {}", thread.tid);
  Add(weight, std::move(what), std::move(command), TimeOf(stretch));
}

uint64_t IdleHints::AddGaps(uint64_t start_ns, uint64_t end_ns, IdleCauses& causes) {
  for (const IdleGap& gap : gaps_) {
    if (gap.start_ns < start_ns || gap.end_ns > end_ns) continue;
    for (const IdlePart& part : parts_.Of(gap)) causes.Add(part);
  }
  uint64_t busy_ns = 0;
  for (const BusySpan& span : gpu_->spans) {
    if (span.start_ns >= start_ns && span.end_ns <= end_ns) busy_ns += span.end_ns - span.start_ns;
  }
  return busy_ns;
}

// Adds a hint that shows what the thread did at that time.
void IdleHints::AddThread(const Owner& thread, uint64_t start_ns, uint64_t end_ns,
                          IdleCauses& causes) {
  for (const IdlePart& part : parts_.Of(thread, start_ns, end_ns)) causes.Add(part);
}

// "importing Python modules (62 %), loading GPU code (12 %)"; empty: nothing has a name.
std::string IdleHints::CausesText(IdleCauses& causes) {
  constexpr size_t kMost = 3;
  std::string text;
  size_t named = 0;
  for (const IdleCauses::Share& share : causes.Shares()) {
    const double of_all = ShareOf(share.ns, causes.whole_ns());
    if (of_all < kMuchOfIdle || named == kMost) break;
    std::string name(ActivityName(share.activity));
    const std::string place = causes.PlaceOf(share.activity);
    if (name.empty()) {
      // All that has no name of its own: the place is where most of it was.
      const bool is_place = !place.empty() && !place.starts_with("waiting for ");
      name = is_place ? Format("code mostly in {}", place) : place;
    } else if (share.activity == Activity::kDataLoader && !place.empty()) {
      AppendFormat(name, ", mostly in {}", place);
    }
    if (name.empty()) continue;
    const bool is_other = share.meanwhile_ns > share.ns / 2;
    AppendFormat(text, "{}{} ({}{})", text.empty() ? "" : ", ", ToWidth(name, 60),
                 ShareText(of_all), is_other ? ", while the launching thread did not run" : "");
    ++named;
  }
  return text;
}

// From the start of the program, or of the recording, to the steady state.
void IdleHints::AddStart() {
  if (filter_.IsOfRanges() || gpu_->spans.empty()) return;
  const Owner owner = analysis_.correlation.work[gpu_->spans.front().first].owner();
  const uint64_t shown_ns = start_ns_ + filter_.time.start_ns;
  uint64_t begin_ns = shown_ns;
  if (owner.process) {
    begin_ns = std::max(begin_ns, analysis_.processes[owner.process].start_ns);
  }
  begin_ns = std::min(begin_ns, phases_.first_ns);
  const uint64_t ns = CountedNs(*gpu_, begin_ns, phases_.steady_ns);
  if (analysis_.model.events.recording_info.empty() || Elapsed(ns) < kMuchOfRun) return;
  IdleCauses causes(analysis_, paths_, idle_paths_);
  AddThread(owner, begin_ns, phases_.first_ns, causes);
  const uint64_t busy_ns = AddGaps(phases_.first_ns, phases_.steady_ns, causes);
  if (ShareOf(busy_ns, ns) > 1 - kMuchIdle) return;
  const std::string text = CausesText(causes);
  // --time counts from the start of the recording, which may have waited for the program.
  const bool is_of_recording = begin_ns <= shown_ns + ns / 100;
  AddWithSamples(Elapsed(ns - busy_ns),
                 Format("{} of GPU {} {} {} ({} of the elapsed time){}{}",
                        phases_.has_warm_up() ? "The steady state" : "The first work", gpu_->gpu,
                        phases_.has_warm_up() ? "began" : "started",
                        is_of_recording ? Format("after {}", HumanDuration(ns))
                                        : Format("{} after the start of {}", HumanDuration(ns),
                                                 analysis_.job.TitleOf(owner.process, owner.pid)),
                        ShareText(Elapsed(ns)), text.empty() ? "" : ": ", text),
                 "until then", owner,
                 {filter_.time.start_ns == 0 ? 0 : begin_ns, phases_.steady_ns}, "start.html");
}

// Says which time `part_ns` is a share of.
std::string IdleHints::SteadyText(uint64_t part_ns) const {
  const uint64_t ns = CountedNs(*gpu_, phases_.steady_ns, phases_.steady_end_ns);
  if (gpu_->spans.empty())
    return Format("of the selected part, {}", HumanDuration(gpu_->active_ns()));
  if (!phases_.has_warm_up() && !phases_.has_tail()) {
    return Format("of the {} between its first and its last work",
                  HumanDuration(gpu_->active_ns()));
  }
  return Format("of its steady state, {} of {} ({} of the elapsed time)", HumanDuration(part_ns),
                HumanDuration(ns), ShareText(Elapsed(part_ns)));
}

// The kind of the launch in the gap, which ended it; kOther: there is none.
ApiKind KindOfLaunch(const IdleGap& gap, const LaunchList& launches) {
  const uint32_t place = gap.launch != GpuWork::kNoLaunch ? gap.launch : gap.filtered_launch;
  if (place == GpuWork::kNoLaunch) return ApiKind::kOther;
  const Launch& launch = launches[place];
  return launch.end_ns > gap.start_ns ? launch.kind : ApiKind::kOther;
}

// Short gaps, each until the next launch.
bool IdleHints::AddLaunching(const std::string& begin, uint64_t idle_ns, const std::string& time) {
  uint64_t gaps = 0;
  uint64_t graphs = 0;
  uint64_t ns = 0;
  for (const IdleGap& gap : gaps_) {
    if (gap.ns > kLaunchGapNs || gap.start_ns < phases_.steady_ns ||
        gap.end_ns > phases_.steady_end_ns) {
      continue;
    }
    const ApiKind kind = KindOfLaunch(gap, analysis_.correlation.launches);
    if (kind == ApiKind::kOther) continue;
    ++gaps;
    graphs += kind == ApiKind::kGraphLaunch ? 1 : 0;
    ns += gap.ns;
  }
  if (gaps < kManyGaps || ns < idle_ns / 2) return false;
  uint64_t spans = 0;
  uint64_t busy_ns = 0;
  for (const BusySpan& span : gpu_->spans) {
    if (span.start_ns < phases_.steady_ns || span.end_ns > phases_.steady_end_ns) continue;
    ++spans;
    busy_ns += span.end_ns - span.start_ns;
  }
  Add(Elapsed(idle_ns) >= kMuchSteady ? 1 : Elapsed(idle_ns),
      Format("{}: launch-bound. {} of that was in {} gaps of {} on average until the next launch; "
             "the work between them averaged {}. Consider {}. {}:",
             begin, ShareText(ShareOf(ns, idle_ns)), WithThousands(gaps), HumanDuration(ns / gaps),
             HumanDuration(busy_ns / std::max<uint64_t>(spans, 1)),
             graphs > gaps / 2 ? "graphs that contain more steps, or larger kernels"
                               : "CUDA graphs, or fewer and larger kernels",
             graphs > gaps / 2 ? "The longest gaps" : "Launch and queue times"),
      graphs > gaps / 2 ? "--top --table gpu_gaps" : "--top --table cuda_kern_exec_sum", time);
  return true;
}

void IdleHints::AddSteady() {
  IdleCauses causes(analysis_, paths_, idle_paths_);
  const uint64_t busy_ns = AddGaps(phases_.steady_ns, phases_.steady_end_ns, causes);
  const uint64_t idle_ns = causes.whole_ns();
  const double busy = ShareOf(busy_ns, busy_ns + idle_ns);
  const bool is_whole = !phases_.has_warm_up() && !phases_.has_tail();
  const std::string time = is_whole ? "" : TimeOf({phases_.steady_ns, phases_.steady_end_ns});
  const bool comes_first = Elapsed(std::max(busy_ns, idle_ns)) >= kMuchSteady;
  if (busy >= kMostlyBusy) {
    // One short piece of work is always busy from its start to its end.
    if (gpu_->spans.size() < 2 || Elapsed(busy_ns) < kNegligible) return;
    return Add(comes_first ? 1 : Elapsed(busy_ns),
               Format("GPU {} was busy for {} {}: GPU-bound. The code that launches its kernels:",
                      gpu_->gpu, ShareText(busy), SteadyText(busy_ns)),
               "--top --table callpath_sum", time);
  }
  if (1 - busy < kMuchIdle || Elapsed(idle_ns) < kNegligible) return;
  const std::string begin =
      Format("GPU {} was idle for {} {}", gpu_->gpu, ShareText(1 - busy), SteadyText(idle_ns));
  if (AddLaunching(begin, idle_ns, time)) return;
  const std::string text = CausesText(causes);
  const bool loads = causes.Shares().front().activity == Activity::kDataLoader;
  Add(comes_first ? 1 : Elapsed(idle_ns),
      Format("{}{}{}. {}The longest gaps, and what ended them:", begin, text.empty() ? "" : ": ",
             text,
             loads ? "More workers (num_workers), or less work per item, would supply it faster. "
                   : ""),
      "--top --table gpu_gaps", time);
}

void IdleHints::AddEnd() {
  const LoadedEvents& events = analysis_.model.events;
  if (filter_.IsOfRanges() || gpu_->spans.empty() || events.recording_end.empty()) return;
  const Owner owner = analysis_.correlation.work[gpu_->spans.back().last].owner();
  uint64_t end_ns = events.recording_end.back().time_ns;
  const bool is_part = filter_.time.end_ns != TimeRange::kNoEnd;
  if (is_part) end_ns = std::min(end_ns, start_ns_ + filter_.time.end_ns);
  if (owner.process && analysis_.processes[owner.process].end_ns != 0) {
    end_ns = std::min(end_ns, analysis_.processes[owner.process].end_ns);
  }
  const uint64_t ns = CountedNs(*gpu_, std::min(end_ns, phases_.steady_end_ns), end_ns);
  if (Elapsed(ns) < kMuchOfRun) return;
  IdleCauses causes(analysis_, paths_, idle_paths_);
  const uint64_t busy_ns = AddGaps(phases_.steady_end_ns, phases_.last_ns, causes);
  if (ShareOf(busy_ns, ns) > 1 - kMuchIdle) return;
  AddThread(owner, phases_.last_ns, std::max(phases_.last_ns, end_ns), causes);
  const std::string text = CausesText(causes);
  AddWithSamples(
      Elapsed(ns - busy_ns),
      Format("{} of GPU {}{}, the program ran for another {} ({} of the elapsed time){}{}",
             phases_.has_tail() ? "After the steady state" : "After the last work", gpu_->gpu,
             is_part ? " in the selected part" : "", HumanDuration(ns), ShareText(Elapsed(ns)),
             text.empty() ? "" : ": ", text),
      "then", owner,
      {phases_.steady_end_ns, is_part ? start_ns_ + filter_.time.end_ns : TimeRange::kNoEnd},
      "end.html");
}

// In several captures no program was seen between two recordings, and none of them explains it.
bool AreDisjoint(const Model& model) {
  uint64_t last_start_ns = 0;
  uint64_t first_end_ns = UINT64_MAX;
  for (const MergedCapture& capture : model.captures) {
    last_start_ns = std::max(last_start_ns, capture.info.start_ns);
    if (capture.end) first_end_ns = std::min(first_end_ns, capture.end->time_ns);
  }
  return last_start_ns > first_end_ns;
}

}  // namespace

std::vector<Hint> FindIdleHints(Analysis& analysis, const std::vector<GpuBusy>& gpus,
                                const FilterOptions& filter) {
  const auto longest = std::max_element(
      gpus.begin(), gpus.end(),
      [](const GpuBusy& a, const GpuBusy& b) { return a.idle_ns() < b.idle_ns(); });
  if (longest == gpus.end() || AreDisjoint(analysis.model)) return {};
  return IdleHints(analysis, filter).Find(*longest);
}

}  // namespace xpu
