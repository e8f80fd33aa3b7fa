#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "format/base/text.h"
#include "report/critical_path/what_if.h"
#include "report/output/text.h"
#include "report/views/summary/summary_hints.h"

namespace xpu {
namespace {

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

std::optional<Hint> FindCriticalHint(Analysis& analysis, const std::vector<StepSeries>& all,
                                     const FilterOptions& filter, uint64_t most_calls) {
  constexpr size_t kMost = 2;
  // Of a part it would be about another path.
  if (!analysis.shown.filter_text.empty()) return std::nullopt;
  const uint64_t elapsed_ns = ElapsedNs(analysis, filter);
  const CriticalWindow all_steps = FindCriticalSteps(analysis, all, std::nullopt);
  const double share = ShareOf(all_steps.all_steps_ns, elapsed_ns);
  // The window of the path is no longer. The path takes far longer to find than the steps.
  if (all_steps.steps == 0 || share < kMuchOfElapsed) return std::nullopt;
  const std::optional<StepRange> range = MiddleSteps(analysis, all_steps, elapsed_ns, most_calls);
  const CriticalWindow steps = range ? FindCriticalSteps(analysis, all, range) : all_steps;
  // What is before them may have launched what runs in them.
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
