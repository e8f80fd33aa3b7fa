#include <algorithm>
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

// To make a whole thread or program faster is not advice.
void RemoveWholeProgram(std::vector<Prediction>& all) {
  std::erase_if(all, [](const Prediction& prediction) {
    const std::string_view name = prediction.name;
    return prediction.speedup.kind == Speedup::Kind::kThread || name == "main" ||
           name.ends_with(":main") || name.ends_with(":<module>");
  });
}

}  // namespace

std::optional<Hint> FindCriticalHint(Analysis& analysis, const std::vector<StepSeries>& all,
                                     const FilterOptions& filter) {
  constexpr size_t kMost = 2;
  // Of a part it would be about another path.
  if (!analysis.shown.filter_text.empty()) return std::nullopt;
  const uint64_t elapsed_ns = ElapsedNs(analysis, filter);
  const CriticalWindow steps = FindCriticalSteps(analysis, all, std::nullopt);
  // The window of the path is no longer. The path takes far longer to find than the steps.
  if (steps.steps == 0 || ShareOf(steps.ns(), elapsed_ns) < kMuchOfElapsed) return std::nullopt;
  CallPaths paths(analysis, {});
  paths.NameAhead({.samples = true, .launches = true, .off_cpu_waits = true});
  CriticalPath critical(analysis, paths, steps);
  const CriticalWindow& window = critical.window();
  if (critical.empty() || window.steps == 0) return std::nullopt;
  if (ShareOf(window.ns(), elapsed_ns) < kMuchOfElapsed) return std::nullopt;
  const double assumed = ShareOf(critical.assumed_ns(), window.ns());
  if (assumed >= kMostAssumed) return std::nullopt;
  std::vector<Prediction> predictions = WhatIf(analysis, paths, critical).Candidates(0, kMost);
  RemoveWholeProgram(predictions);
  std::string text =
      Format("A step takes {} on average", HumanDuration(window.StepNs(window.ns())));
  size_t named = 0;
  for (const Prediction& prediction : predictions) {
    const uint64_t saved_ns = window.ns() - std::min(window.ns(), prediction.predicted_ns);
    const double shorter = ShareOf(saved_ns, window.ns());
    if (named == kMostNamed || shorter < kMuchShorter) break;
    if (named == 0) {
      AppendFormat(text, ". If {} took no time, steps would be {} shorter", WhatText(prediction),
                   ShareText(shorter));
    } else {
      AppendFormat(text, "; without {} {}", WhatText(prediction), ShareText(shorter));
    }
    ++named;
  }
  if (named == 0) return std::nullopt;
  if (assumed >= kMuchAssumed) {
    AppendFormat(text, " ({} of the path that says so is assumed{})", ShareText(assumed),
                 critical.graph().has_off_cpu() ? "" : "; xpu-record --off-cpu shows what waits");
  }
  return Hint{text + ". What else decides how long they take:",
              "--table what_if" + StepOption(filter)};
}

}  // namespace xpu
