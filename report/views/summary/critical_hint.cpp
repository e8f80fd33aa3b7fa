#include "report/views/summary/critical_hint.h"

#include <algorithm>
#include <string>
#include <vector>

#include "format/base/text.h"
#include "report/critical_path/what_if.h"
#include "report/output/text.h"

namespace xpu {
namespace {

// Steps that are a smaller part of the elapsed time are not what the program is slow for.
constexpr double kMuchOfElapsed = 0.05;
// What makes steps shorter by less is no advice.
constexpr double kMuchShorter = 0.1;
// A function that does nearly all that its thread does on the path says more than the thread.
constexpr double kNearlyAll = 0.8;
// More than this part of the path is assumed: it may be another one.
constexpr double kMuchAssumed = 0.1;

std::string WhatText(const Prediction& prediction) {
  const std::string name = ToWidth(prediction.name, 60);
  switch (prediction.speedup.kind) {
    case Speedup::Kind::kKernel:
      return Format("the kernel {}", name);
    case Speedup::Kind::kFunction:
      return name;
    case Speedup::Kind::kThread:
      return prediction.name == "pt_data_worker" ? "the data loader (pt_data_worker)"
                                                 : Format("what {} runs", name);
  }
  return name;
}

const Prediction& BestOf(const std::vector<Prediction>& all, uint64_t whole_ns) {
  const Prediction& best = all.front();
  if (best.speedup.kind != Speedup::Kind::kThread) return best;
  const auto shorter = [&](const Prediction& prediction) {
    return static_cast<double>(whole_ns) - static_cast<double>(prediction.predicted_ns);
  };
  for (const Prediction& other : all) {
    const bool says_more = other.speedup.kind == Speedup::Kind::kFunction &&
                           shorter(other) >= kNearlyAll * shorter(best);
    if (says_more) return other;
  }
  return best;
}

}  // namespace

std::optional<Hint> FindCriticalHint(Analysis& analysis, const FilterOptions& filter) {
  constexpr size_t kMost = 2;
  // Of a part it would be about another path.
  if (!analysis.shown.filter_text.empty()) return std::nullopt;
  CallPaths paths(analysis, {});
  paths.NameAhead({.samples = true, .launches = true, .off_cpu_waits = true});
  CriticalPath critical(analysis, paths, {});
  const CriticalWindow& window = critical.window();
  if (critical.empty() || window.steps == 0) return std::nullopt;
  if (ShareOf(window.ns(), ElapsedNs(analysis, filter)) < kMuchOfElapsed) return std::nullopt;
  const std::vector<Prediction> all = WhatIf(analysis, paths, critical).Candidates(0, kMost);
  if (all.empty()) return std::nullopt;
  const Prediction& best = BestOf(all, window.ns());
  const uint64_t saved_ns = window.ns() - std::min(window.ns(), best.predicted_ns);
  if (ShareOf(saved_ns, window.ns()) < kMuchShorter) return std::nullopt;
  std::string text =
      Format("A step takes {}. If {} took no time, steps would be {} shorter",
             HumanDuration(window.StepNs(window.ns())), WhatText(best),
             ShareText(ShareOf(saved_ns, window.ns())));
  const double assumed = ShareOf(critical.assumed_ns(), window.ns());
  if (assumed >= kMuchAssumed) {
    AppendFormat(text, " ({} of the path that says so is assumed{})", ShareText(assumed),
                 critical.graph().has_off_cpu() ? "" : "; xpu-record --off-cpu shows what waits");
  }
  return Hint{text + ". What else decides how long they take:", "--table what_if"};
}

}  // namespace xpu
