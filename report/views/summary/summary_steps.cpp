// Steps in the summary: how long they take, and what would make them shorter.
#include <algorithm>
#include <cmath>

#include "format/base/text.h"
#include "report/base/text.h"
#include "report/critical_path/what_if.h"
#include "report/query/statistics.h"
#include "report/views/summary/summary_hints.h"
#include "report/views/summary/summary_sections.h"
#include "report/workload/slow_steps.h"
#include "report/workload/step_selection.h"

namespace xpu {
namespace {

// Slow steps that take less than a fifth more are ordinary.
bool AreWorthALine(const SlowSteps& steps) {
  return steps.slow.average_ns() > steps.median.average_ns() + steps.median.average_ns() / 5;
}

// A thread that launches ahead of the GPU goes through its loop faster than the work is done: what
// is left of it at the end says by how much.
std::string AheadText(const Analysis& analysis, const StepSeries& series) {
  const bool is_merged = !analysis.model.captures.empty();  // it would take a pass for each process
  if (is_merged || series.steps.empty()) return {};
  uint64_t gpu_end_ns = 0;
  for (const StepCost& cost : StepCosts(analysis, series)) {
    gpu_end_ns = std::max(gpu_end_ns, cost.end_ns);
  }
  const uint64_t end_ns = series.steps.back().end_ns;
  const uint64_t length_ns = end_ns - series.steps.front().start_ns;
  if (gpu_end_ns <= end_ns || gpu_end_ns - end_ns <= length_ns / 4) return {};
  return Format("; launched ahead: the GPU finished {} after the last step",
                HumanDuration(gpu_end_ns - end_ns));
}

std::string SeriesText(const Analysis& analysis, const StepSeries& series,
                       const StepDefinition& definition) {
  std::vector<uint64_t> durations;
  for (size_t i = series.warm_up; i < series.steps.size(); ++i) {
    durations.push_back(series.steps[i].end_ns - series.steps[i].start_ns);
  }
  std::sort(durations.begin(), durations.end());
  return Format("{} in {}, median {}, 99th percentile {} ({}){}",
                WithThousands(series.steps.size()),
                analysis.job.TitleOf(series.thread.process, series.thread.pid),
                HumanDuration(Percentile(durations, 50)), HumanDuration(Percentile(durations, 99)),
                HowFound(series, definition), AheadText(analysis, series));
}

// Steps that are a smaller part of the elapsed time are not what the program is slow for.
constexpr double kMuchOfElapsed = 0.05;
// A smaller gain is not worth advice.
constexpr double kMuchShorter = 0.1;
// More than this part of the path is assumed: it may be another one.
constexpr double kMuchAssumed = 0.1;
// And more than this: nothing says what the program waited for.
constexpr double kMostAssumed = 0.5;
constexpr size_t kMostNamed = 3;

// A C++ function without its parameters.
std::string_view WithoutParameters(std::string_view name) {
  if (name.find("operator()") != std::string_view::npos) return name;
  const size_t parameters = name.find('(', 1);
  return name.ends_with(')') ? name.substr(0, parameters) : name;
}

std::string WhatText(const Prediction& prediction) {
  const std::string name = ToWidth(prediction.name, 60);
  switch (prediction.speedup.kind) {
    case Speedup::Kind::kKernel:
      return Format("the kernel {}", name);
    case Speedup::Kind::kFunction:
      return prediction.name.starts_with("dataloader.py:")
                 ? Format("the data loader ({})", name)
                 : ToWidth(WithoutParameters(prediction.name), 60);
    case Speedup::Kind::kThread:
      break;
  }
  return name;
}

std::string DurationText(const CriticalWindow& window, const std::optional<StepRange>& range) {
  const std::string duration = HumanDuration(window.StepNs(window.ns()));
  if (!range) return Format("A step takes {} on average", duration);
  const std::string first = WithThousands(range->first);
  if (range->first == range->last) return Format("Step {} takes {}", first, duration);
  return Format("In steps {} to {}, a step takes {} on average", first, WithThousands(range->last),
                duration);
}

// To make a whole thread or program faster is not advice.
void RemoveWholeProgram(std::vector<Prediction>& all) {
  std::erase_if(all, [](const Prediction& prediction) {
    const std::string_view name = prediction.name;
    return prediction.speedup.kind == Speedup::Kind::kThread || name == "main" ||
           name.ends_with(":main") || name.ends_with(":<module>");
  });
}

// Steps in the middle that have about so many calls and waits; nullopt: all have fewer.
std::optional<StepRange> MiddleSteps(const Analysis& analysis, const CriticalWindow& all,
                                     uint64_t elapsed_ns, uint64_t most_calls) {
  const auto calls = static_cast<double>(analysis.correlation.launches.size() +
                                         analysis.model.events.off_cpu_waits.size());
  const double part =
      static_cast<double>(most_calls) / std::max(1.0, calls * ShareOf(all.ns(), elapsed_ns));
  if (part >= 1) return std::nullopt;
  const auto steps = static_cast<size_t>(std::ceil(static_cast<double>(all.steps) * part));
  const size_t first = all.first + (all.steps - steps) / 2;
  return StepRange{first, first + steps - 1};
}

}  // namespace

bool WriteSteps(Analysis& analysis, const StepDefinition& definition, std::vector<StepSeries> all,
                SummaryText& text) {
  if (analysis.shown.scale > 1) return false;
  std::erase_if(all, [](const StepSeries& series) { return !IsCredible(series); });
  const Result<SlowSteps> found = FindSlowSteps(all);
  if (!found.ok()) return false;
  text.Heading("Steps");
  for (const StepSeries& series : all) {
    text.Wrapped("- ", "  ", SeriesText(analysis, series, definition));
  }
  const SlowSteps& steps = found.value();
  if (!AreWorthALine(steps)) return false;
  Analysis slow = analysis;
  Analysis median = analysis;
  SelectSteps(steps.slow.series, slow);
  SelectSteps(steps.median.series, median);
  const StepComparison compared = CompareSteps(steps, slow, median, {});
  text.Wrapped("- ", "  ", GrowthText(steps, compared, analysis.frames));
  return true;
}

std::optional<Hint> FindCriticalHint(Analysis& analysis, const std::vector<StepSeries>& all,
                                     const FilterOptions& filter, uint64_t most_calls) {
  constexpr size_t kMost = 2;
  // For a part of the capture it would be about another path.
  if (!analysis.shown.filter_text.empty()) return std::nullopt;
  const uint64_t elapsed_ns = ElapsedNs(analysis, filter);
  const CriticalWindow all_steps = FindCriticalSteps(analysis, all, std::nullopt);
  const double share = ShareOf(all_steps.all_steps_ns, elapsed_ns);
  // The window of the path is no longer. The path takes far longer to find than the steps.
  if (all_steps.steps == 0 || share < kMuchOfElapsed) return std::nullopt;
  const std::optional<StepRange> range = MiddleSteps(analysis, all_steps, elapsed_ns, most_calls);
  const CriticalWindow steps = range ? FindCriticalSteps(analysis, all, range) : all_steps;
  // Calls before the steps may have launched what runs in them.
  const RecordingPart part{steps.from_ns - std::min(steps.from_ns, steps.ns()), steps.to_ns};
  CallPaths paths(analysis, {});
  paths.NameAhead({.samples = true, .launches = true, .off_cpu_waits = true});
  CriticalPath critical(analysis, paths, steps, range ? part : RecordingPart{});
  const CriticalWindow& window = critical.window();
  if (critical.empty() || window.steps == 0) return std::nullopt;
  if (share * ShareOf(window.ns(), steps.ns()) < kMuchOfElapsed) return std::nullopt;
  const double assumed = ShareOf(critical.assumed_ns(), window.ns());
  if (assumed >= kMostAssumed) return std::nullopt;
  std::vector<Prediction> predictions = WhatIf(analysis, paths, critical).Candidates(0, kMost);
  RemoveWholeProgram(predictions);
  std::string text = DurationText(window, range);
  size_t named = 0;
  for (const Prediction& prediction : predictions) {
    const uint64_t saved_ns = window.ns() - std::min(window.ns(), prediction.predicted_ns);
    const double shorter = ShareOf(saved_ns, window.ns());
    if (named == kMostNamed || shorter < kMuchShorter) break;
    if (named == 0) {
      AppendFormat(text, ". If {} took no time, steps would be {} shorter", WhatText(prediction),
                   ShareText(shorter));
    } else {
      AppendFormat(text, "; without {}, {}", WhatText(prediction), ShareText(shorter));
    }
    ++named;
  }
  if (named == 0) return std::nullopt;
  if (assumed >= kMuchAssumed) {
    AppendFormat(text, " ({} of that path is assumed{})", ShareText(assumed),
                 critical.graph().has_off_cpu() ? "" : "; xpu-record --off-cpu shows the waits");
  }
  return Hint{text + ". What else decides how long they take:",
              "--table what_if" + StepOption(filter) +
                  (range ? Format(" --step-range {}-{}", range->first, range->last) : "")};
}

}  // namespace xpu
