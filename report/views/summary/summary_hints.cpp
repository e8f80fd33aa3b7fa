#include "report/views/summary/summary_hints.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "format/base/quote.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/analysis/overheads.h"
#include "report/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/code_samples.h"
#include "report/query/gpu_memory.h"
#include "report/query/unfinished_work.h"
#include "report/ranks/late_ranks.h"
#include "report/ranks/rank_sums.h"

namespace xpu {
namespace {

constexpr size_t kMost = 4;
// Thresholds; below them a hint would be noise.
constexpr double kManyShort = 0.5;
constexpr double kMuchCopying = 0.05;
constexpr double kMuchWaiting = 0.2;
constexpr double kMuchOverhead = 0.05;
constexpr double kDominantLine = 0.25;  // of all samples of GPU code, for one reason

class Hints {
 public:
  Hints(Analysis& analysis, const std::vector<GpuBusy>& gpus, const std::vector<StepSeries>& steps,
        const FilterOptions& filter)
      : analysis_(analysis),
        gpus_(gpus),
        steps_(steps),
        filter_(filter),
        elapsed_ns_(ElapsedNs(analysis, filter)) {}

  std::vector<Hint> Find() {
    hints_ = FindIdleHints(analysis_, gpus_, filter_);
    AddWaiting();
    AddPageable();
    AddCompiling();
    AddOverhead();
    AddReplays();
    AddGpuLine();
    if (std::optional<Hint> hint = FindCriticalHint(analysis_, steps_, filter_)) {
      hints_.insert(hints_.begin(), *std::move(hint));
    }
    // A GPU that is held back explains the others.
    const std::vector<Hint> of_gpus = FindGpuHints(analysis_);
    hints_.insert(hints_.begin(), of_gpus.begin(), of_gpus.end());
    // First: it is recorded only on request.
    const std::vector<Hint> memory = FindMemoryHints(analysis_);
    hints_.insert(hints_.begin(), memory.begin(), memory.end());
    if (const std::string text = UnfinishedText(analysis_); !text.empty()) {
      hints_.insert(hints_.begin(), {text + " All of it:", "--top --table unfinished_sum"});
    } else {
      if (std::optional<Hint> hint = FindXidHint(analysis_)) {
        hints_.insert(hints_.begin(), *std::move(hint));
      }
      if (std::string earlier = EarlierWorkText(analysis_); !earlier.empty()) {
        hints_.insert(hints_.begin(), {std::move(earlier), ""});
      }
    }
    // What makes one rank late is what makes all of them slow.
    if (const std::string text = LateRanksText(analysis_); !text.empty()) {
      hints_.insert(hints_.begin(), {text + " By rank and path:", "--top --table straggler_sum"});
    }
    if (const std::string text = StuckCollectivesText(analysis_); !text.empty()) {
      hints_.insert(hints_.begin(), {text + " All collectives:", "--top --table collective_trace"});
    }
    if (hints_.size() > kMost) hints_.resize(kMost);
    return std::move(hints_);
  }

 private:
  void Add(std::string what, std::string next) {
    hints_.push_back({std::move(what), std::move(next)});
  }
  void AddWaiting();
  void AddPageable();
  void AddCompiling();
  void AddOverhead();
  void AddReplays();
  void AddGpuLine();
  uint64_t LifeNs(ProcessId process) const;

  Analysis& analysis_;
  const std::vector<GpuBusy>& gpus_;
  const std::vector<StepSeries>& steps_;
  const FilterOptions& filter_;
  const uint64_t elapsed_ns_;
  std::vector<Hint> hints_;
};

uint64_t Hints::LifeNs(ProcessId process) const {
  if (!process || analysis_.model.events.recording_info.empty()) return elapsed_ns_;
  const uint64_t start_ns = StartOf(analysis_.model) + filter_.time.start_ns;
  const ProcessHistory::Process& life = analysis_.processes[process];
  const uint64_t from_ns = std::max(life.start_ns, start_ns);
  const uint64_t to_ns = life.end_ns == 0 ? start_ns + elapsed_ns_ : life.end_ns;
  return to_ns > from_ns ? std::min(to_ns - from_ns, elapsed_ns_) : 0;
}

void Hints::AddWaiting() {
  std::map<ProcessId, uint64_t> waits;
  for (const Launch& launch : analysis_.Launches()) {
    if (!launch.has_call || launch.tid != launch.pid || launch.pid == 0) continue;
    const std::string& name = ApiNameOf(analysis_.api_names, launch);
    if (name.find("Synchronize") == std::string::npos) continue;
    uint64_t& ns = waits[launch.process];
    ns = AddSaturated(ns, launch.end_ns - launch.start_ns);
  }
  double most = 0;
  ProcessId worst;
  for (const auto& [process, ns] : waits) {
    if (ShareOf(ns, elapsed_ns_) < kNegligible) continue;
    const double share = std::min(1.0, ShareOf(ns, LifeNs(process)));
    if (share > most) std::tie(most, worst) = std::pair(share, process);
  }
  if (most < kMuchWaiting) return;
  const std::string_view name = worst ? analysis_.processes.Name(worst) : "";
  Add(Format("The main thread{}{} spends {} of its time in synchronization calls. What it waits "
             "for:",
             name.empty() ? "" : " of ", name, ShareText(most)),
      "--top --table cuda_wait_sum");
}

void Hints::AddPageable() {
  uint64_t to_gpu_ns = 0;
  uint64_t from_gpu_ns = 0;
  uint64_t bytes = 0;
  uint64_t all_ns = 0;
  for (const GpuWork& work : analysis_.Work()) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    all_ns = AddSaturated(all_ns, work.duration_ns);
    if (work.kind != WorkKind::kMemcpy) continue;
    const Memcpy& copy = analysis_.model.events.memcpys[work.index];
    if (!IsPageable(copy.source_kind) && !IsPageable(copy.destination_kind)) continue;
    if (IsOfHost(copy.source_kind) && IsOfHost(copy.destination_kind)) continue;
    uint64_t& ns = IsPageable(copy.source_kind) ? to_gpu_ns : from_gpu_ns;
    ns = AddSaturated(ns, work.duration_ns);
    bytes = AddSaturated(bytes, copy.size_bytes);
  }
  const uint64_t pageable_ns = AddSaturated(to_gpu_ns, from_gpu_ns);
  if (ShareOf(pageable_ns, all_ns) < kMuchCopying) return;
  if (ShareOf(pageable_ns, elapsed_ns_) < kNegligible) return;
  Add(Format("Copies {} pageable memory are {} of all GPU work ({}, {}). With pinned memory they "
             "are faster and do not block the CPU. Each copy:",
             to_gpu_ns >= from_gpu_ns ? "from" : "to", ShareText(ShareOf(pageable_ns, all_ns)),
             HumanDuration(pageable_ns), HumanBytes(bytes)),
      "--top --table cuda_gpu_trace");
}

// A compilation is not in the overheads of CUPTI; loading is.
void Hints::AddCompiling() {
  uint64_t ns = 0;
  for (const JitOperation& jit : analysis_.JitOperations()) {
    if (IsTimed(jit) && IsCompilation(jit)) ns = AddSaturated(ns, jit.end_ns - jit.start_ns);
  }
  if (ShareOf(ns, elapsed_ns_) < kMuchOverhead) return;
  Add(Format("The driver compiled GPU code for {} while the program ran. To avoid this, build the "
             "program for this GPU's architecture (nvcc -arch) or keep the driver's cache "
             "(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE). What was compiled:",
             HumanDuration(ns)),
      "--top --table jit_sum");
}

void Hints::AddOverhead() {
  uint64_t loading_ns = 0;
  uint64_t other_ns = 0;
  for (const Overhead& overhead : analysis_.Overheads()) {
    if (!IsTimed(overhead)) continue;
    uint64_t& ns = IsLazyLoading(overhead) ? loading_ns : other_ns;
    ns = AddSaturated(ns, overhead.end_ns - overhead.start_ns);
  }
  if (ShareOf(loading_ns, elapsed_ns_) >= kMuchOverhead) {
    Add(Format("Loading GPU code at its first use took {}; CUDA_MODULE_LOADING=EAGER loads it when "
               "the program starts. By kind:",
               HumanDuration(loading_ns)),
        "--top --table cuda_overhead_sum");
  }
  if (ShareOf(other_ns, elapsed_ns_) >= kMuchOverhead) {
    Add(Format("The driver and CUPTI spent {} on work of their own (buffers, setup):",
               HumanDuration(other_ns)),
        "--top --table cuda_overhead_sum");
  }
}

void Hints::AddReplays() {
  uint64_t replays_ns = 0;
  uint64_t all_ns = 0;
  for (const GpuWork& work : analysis_.Work()) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    all_ns = AddSaturated(all_ns, work.duration_ns);
    if (work.kind == WorkKind::kGraph) replays_ns = AddSaturated(replays_ns, work.duration_ns);
  }
  if (ShareOf(replays_ns, all_ns) < kManyShort) return;
  if (ShareOf(replays_ns, elapsed_ns_) < kNegligible) return;
  hints_.push_back({Format("{} of the GPU work is in CUDA graph replays that were recorded as a "
                           "whole. To see their kernels, record with xpu-record "
                           "--cuda-graph-trace=node.",
                           ShareText(ShareOf(replays_ns, all_ns))),
                    ""});
}

// One line of GPU code, where warps wait for one thing.
void Hints::AddGpuLine() {
  if (analysis_.GpuSamples().empty()) return;
  const CodeSamples samples(analysis_);
  std::map<std::tuple<std::string, std::string, std::string_view>, uint64_t> waits;
  uint64_t all = 0;
  for (const SampledFunction& function : samples.functions()) {
    for (const SampledInstruction& at : function.instructions) {
      const std::string place = at.lines.empty() ? "" : ShortPlaceOf(at.lines.front());
      for (const auto& [stall, count] : at.stalls) {
        all = AddSaturated(all, count.samples);
        if (IsIssuing(stall)) continue;
        uint64_t& sum = waits[{place, stall, function.kernel}];
        sum = AddSaturated(sum, count.samples);
      }
    }
  }
  const auto worst = std::max_element(
      waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (worst == waits.end() || ShareOf(worst->second, all) < kDominantLine) return;
  const auto& [place, stall, name] = worst->first;
  const std::string kernel =
      GpuNames(analysis_, KernelNames::kShort).KernelName(std::string_view(name));
  const StallAdvice advice = AdviceOf(stall);
  Add(Format("{} of the samples of GPU code are at {} of {}, where a warp {} ({}){}{}. All lines:",
             ShareText(ShareOf(worst->second, all)), place.empty() ? "instructions" : place, kernel,
             advice.meaning.empty() ? "waits" : advice.meaning, stall,
             advice.hint.empty() ? "" : ": ", advice.hint),
      "--top --table gpu_line_sum");
}

}  // namespace

std::string ShareText(double share) {
  // Not "100 %" of something that was not all.
  if (share < 1 && share > 0.995) return "over 99 %";
  return share < 0.095 ? Format("{:.1f} %", 100 * share) : Format("{:.0f} %", 100 * share);
}

uint64_t ElapsedNs(const Analysis& analysis, const FilterOptions& filter) {
  uint64_t begin_ns = 0;
  uint64_t end_ns = RunTimeNs(analysis.model);
  if (end_ns == 0) end_ns = analysis.recorded_until_ns;
  begin_ns = std::min(filter.time.start_ns, end_ns);
  end_ns = std::min(filter.time.end_ns, end_ns);
  const uint64_t start_ns = StartOf(analysis.model);
  const uint64_t all_ns = end_ns - begin_ns;
  const uint64_t uncounted_ns =
      PausedNs(UncountedTime(analysis), start_ns + begin_ns, start_ns + end_ns);
  return all_ns - std::min(all_ns, uncounted_ns);
}

std::string StepOption(const FilterOptions& filter) {
  if (filter.step_text.empty()) return {};
  return " --step " + QuoteForShell(filter.step_text);
}

std::vector<Hint> FindHints(Analysis& analysis, const std::vector<GpuBusy>& gpus,
                            const std::vector<StepSeries>& steps, const FilterOptions& filter) {
  return Hints(analysis, gpus, steps, filter).Find();
}

}  // namespace xpu
