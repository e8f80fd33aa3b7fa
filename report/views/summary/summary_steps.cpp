#include "report/views/summary/summary_steps.h"

#include <algorithm>
#include <string>
#include <vector>

#include "format/base/text.h"
#include "report/output/text.h"
#include "report/query/statistics.h"
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
  return Format("{} in process {}, median {}, 99th percentile {} ({}){}",
                WithThousands(series.steps.size()), series.thread.pid,
                HumanDuration(Percentile(durations, 50)), HumanDuration(Percentile(durations, 99)),
                HowFound(series, definition), AheadText(analysis, series));
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

}  // namespace xpu
