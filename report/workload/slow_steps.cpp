#include "report/workload/slow_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"

namespace xpu {
namespace {

// So that the slowest tenth has one.
constexpr size_t kFewestSteps = 10;
constexpr size_t kMostNamed = 12;

uint64_t DurationOf(const Step& step) { return step.end_ns - step.start_ns; }

// Adds the steps of `order`, which has their numbers.
void AddTo(StepGroup& group, const StepSeries& of, std::vector<size_t> order) {
  std::sort(order.begin(), order.end());
  StepSeries series = of;
  series.steps.clear();
  for (const size_t number : order) {
    series.steps.push_back(of.steps[number]);
    group.total_ns = AddSaturated(group.total_ns, DurationOf(of.steps[number]));
  }
  group.count += order.size();
  group.series.push_back(std::move(series));
}

void AddThread(const StepSeries& series, SlowSteps& found) {
  std::vector<size_t> order;  // the slowest first
  for (size_t i = series.warm_up; i < series.steps.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return DurationOf(series.steps[a]) > DurationOf(series.steps[b]);
  });
  const auto at = [&](size_t count) { return order.begin() + static_cast<ptrdiff_t>(count); };
  const size_t count = order.size();
  found.steps += count;
  found.slowest.assign(order.begin(), at(count / 10));
  for (size_t& number : found.slowest) number += series.first;
  AddTo(found.slow, series, {order.begin(), at(count / 10)});
  AddTo(found.median, series, {at(count / 4), at(count - count / 4)});
}

// Calls add(path, node) for each path of `from` that has time, `path` being the same one in `tree`.
template <typename Add>
void AddPaths(const CallTree& from, CallTree& tree, Add add) {
  std::vector<PathId> paths;
  for (const CallTree::Node& node : from.nodes()) {
    paths.push_back(tree.Child(node.parent ? paths[node.parent.value - 1] : PathId{}, node.frame));
    if (node.self_ns > 0) add(paths.back(), node);
  }
}

constexpr std::string_view kFewSamples = "too few CPU samples to tell where";

// The CPU samples in and below each path, of both groups of steps.
class SampleCounts {
 public:
  // `is_sample(i)`: whether the node is CPU time.
  template <typename IsSample>
  SampleCounts(const StepComparison& compared, IsSample is_sample) : compared_(compared) {
    const std::vector<CallTree::Node>& nodes = compared.tree.nodes();
    counts_.resize(nodes.size());
    for (size_t i = nodes.size(); i-- > 0;) {
      if (is_sample(i)) {
        counts_[i].slow += static_cast<double>(nodes[i].self_count);
        counts_[i].median += static_cast<double>(compared.median_counts[i]);
      }
      if (!nodes[i].parent) continue;
      Counts& parent = counts_[nodes[i].parent.value - 1];
      parent.slow += counts_[i].slow;
      parent.median += counts_[i].median;
    }
  }

  // Whether slow steps have more of them than chance explains: the difference of two counts per
  // step is more than twice its standard deviation, that of a count being its square root.
  bool Grow(PathId path) const {
    const auto slow_steps = static_cast<double>(std::max<size_t>(compared_.slow_steps, 1));
    const auto median_steps = static_cast<double>(std::max<size_t>(compared_.median_steps, 1));
    const Counts& of = counts_[path.value - 1];
    const double more = of.slow / slow_steps - of.median / median_steps;
    const double variance =
        of.slow / (slow_steps * slow_steps) + of.median / (median_steps * median_steps);
    return more > 2 * std::sqrt(variance);
  }

 private:
  struct Counts {
    double slow = 0;
    double median = 0;
  };
  const StepComparison& compared_;
  std::vector<Counts> counts_;  // by path - 1
};

std::string ChangeText(double ns) {
  return (ns < 0 ? "-" : "+") + HumanDuration(ToSaturated(std::abs(ns)));
}

// "idle GPU +3 ms, GPU +2 us, CPU +1 ms".
std::string ChangesText(const StepGrowth& growth) {
  using Kind = StepGrowth::Kind;
  std::string text;
  for (const Kind kind : {Kind::kIdle, Kind::kGpu, Kind::kCpu}) {
    AppendFormat(text, "{}{} {}", text.empty() ? "" : ", ", NameOf(kind),
                 ChangeText(growth.more_ns[static_cast<size_t>(kind)]));
  }
  return text;
}

std::string PathText(const CallTree& tree, PathId path, const FrameTable& frames) {
  constexpr size_t kWidth = 48;
  std::vector<std::string> names;
  for (const FrameId frame : tree.Path(path)) names.push_back(ForOneLine(frames[frame].Label()));
  return ShortPath(names, kWidth);
}

// "36, 73, 110, ..."
std::string NumbersText(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < std::min(numbers.size(), kMostNamed); ++i) {
    AppendFormat(text, "{}{}", i == 0 ? "" : ", ", numbers[i]);
  }
  return numbers.size() > kMostNamed ? text + ", ..." : text;
}

}  // namespace

Result<SlowSteps> FindSlowSteps(const std::vector<StepSeries>& all) {
  SlowSteps found;
  size_t most = 0;
  for (const StepSeries& series : all) {
    const size_t count = series.steps.size() - series.warm_up;
    most = std::max(most, count);
    if (count >= kFewestSteps) AddThread(series, found);
  }
  if (found.slow.series.size() != 1) found.slowest.clear();
  if (found.slow.count > 0) return found;
  const std::string hint = "--step nvtx:REGEX or function:REGEX says what a step is";
  if (all.empty()) return Error{ErrorKind::kUsage, "--slow-steps: no steps were found", hint};
  return Error{ErrorKind::kUsage,
               Format("--slow-steps: {} after the warm-up; the slowest tenth needs at least {}",
                      Counted(most, "step", "steps"), kFewestSteps),
               hint};
}

StepComparison CompareSteps(const SlowSteps& steps, Analysis& slow, Analysis& median,
                            TreeOptions options) {
  options.with_idle = true;
  StepComparison compared{.tree = CallTree(slow.call_trees),
                          .median_ns = {},
                          .slow_steps = steps.slow.count,
                          .median_steps = steps.median.count};
  AddPaths(BuildCallTree(slow, options), compared.tree,
           [&](PathId path, const CallTree::Node& node) {
             compared.tree.Add(path, steps.slow.PerStep(node.self_ns), node.self_count);
           });
  std::vector<uint64_t>& times = compared.median_ns;
  AddPaths(BuildCallTree(median, options), compared.tree,
           [&](PathId path, const CallTree::Node& node) {
             if (times.size() < path.value) times.resize(path.value);
             uint64_t& ns = times[path.value - 1];
             ns = AddSaturated(ns, steps.median.PerStep(node.self_ns));
             if (compared.median_counts.size() < path.value) {
               compared.median_counts.resize(path.value);
             }
             compared.median_counts[path.value - 1] += node.self_count;
           });
  times.resize(compared.tree.nodes().size());
  compared.median_counts.resize(compared.tree.nodes().size());
  return compared;
}

StepGrowth::Kind StepGrowth::KindOf(const NamedFrame& leaf) {
  if (leaf.origin == FrameOrigin::kGpuWork) return Kind::kGpu;
  // Not the calls that no GPU work is known of.
  const bool is_idle = leaf.origin == FrameOrigin::kPending && leaf.name.ends_with("_Idle]");
  return is_idle ? Kind::kIdle : Kind::kCpu;
}

std::string_view NameOf(StepGrowth::Kind kind) {
  switch (kind) {
    case StepGrowth::Kind::kCpu:
      return "CPU";
    case StepGrowth::Kind::kGpu:
      return "GPU";
    case StepGrowth::Kind::kIdle:
      return "idle GPU";
  }
  return {};
}

StepGrowth FindGrowth(const StepComparison& compared, const FrameTable& frames) {
  using Kind = StepGrowth::Kind;
  const std::vector<CallTree::Node>& nodes = compared.tree.nodes();
  const auto growth_of = [&](size_t i) {
    return static_cast<double>(nodes[i].self_ns) - static_cast<double>(compared.median_ns[i]);
  };
  const auto kind_of = [&](size_t i) { return StepGrowth::KindOf(frames[nodes[i].frame]); };
  StepGrowth found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    found.more_ns[static_cast<size_t>(kind_of(i))] += growth_of(i);
  }
  const auto more = [&](Kind kind) { return found.more_ns[static_cast<size_t>(kind)]; };
  found.most = more(Kind::kIdle) >= more(Kind::kGpu) ? Kind::kIdle : Kind::kGpu;
  if (more(found.most) <= 0) found.most = Kind::kCpu;
  const double all = more(found.most);
  if (all <= 0) return found;
  // Children come after their parents: going back, each is complete when its parent gets it.
  std::vector<double> totals(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    if (kind_of(i) == found.most) totals[i] += growth_of(i);
    if (nodes[i].parent) totals[nodes[i].parent.value - 1] += totals[i];
  }
  std::vector<PathId> largest(nodes.size() + 1);  // of the paths below each path
  for (size_t i = 0; i < nodes.size(); ++i) {
    PathId& known = largest[nodes[i].parent.value];
    if (!known || totals[i] > totals[known.value - 1]) known = PathId{static_cast<uint32_t>(i + 1)};
  }
  const SampleCounts samples(compared, [&](size_t i) { return kind_of(i) == Kind::kCpu; });
  for (PathId next = largest[0]; next; next = largest[next.value]) {
    const double ns = totals[next.value - 1];
    if (found.where && ns < found.where_ns / 2) break;
    if (found.most == Kind::kCpu && !samples.Grow(next)) {
      found.has_few_samples = !found.where;
      break;
    }
    found.where = next;
    found.where_ns = ns;
  }
  return found;
}

std::string GrowthText(const SlowSteps& steps, const StepComparison& compared,
                       const FrameTable& frames) {
  const StepGrowth growth = FindGrowth(compared, frames);
  const uint64_t median_ns = steps.median.average_ns();
  const uint64_t more_ns = steps.slow.average_ns() - std::min(steps.slow.average_ns(), median_ns);
  const double percent =
      median_ns == 0 ? 0 : 100 * static_cast<double>(more_ns) / static_cast<double>(median_ns);
  std::string text = steps.slow.count == 1
                         ? "the slowest takes"
                         : Format("the slowest {} take", WithThousands(steps.slow.count));
  AppendFormat(text, " {} more ({:.0f} %): {}", HumanDuration(more_ns), percent,
               ChangesText(growth));
  if (growth.where) {
    AppendFormat(text, "; {} {} in {}", NameOf(growth.most), ChangeText(growth.where_ns),
                 PathText(compared.tree, growth.where, frames));
  }
  if (growth.has_few_samples) AppendFormat(text, "; {}", kFewSamples);
  return text;
}

std::string SlowStepsText(const SlowSteps& steps, const StepComparison& compared,
                          const FrameTable& frames) {
  std::string text =
      Format("slow    {} of {} steps, {} on average", WithThousands(steps.slow.count),
             WithThousands(steps.steps), HumanDuration(steps.slow.average_ns()));
  if (!steps.slowest.empty()) text += ": " + NumbersText(steps.slowest);
  AppendFormat(text, "\nmedian  {} steps between the quartiles, {} on average\n",
               WithThousands(steps.median.count), HumanDuration(steps.median.average_ns()));
  const StepGrowth growth = FindGrowth(compared, frames);
  AppendFormat(text, "change  {} per step\n", ChangesText(growth));
  if (growth.has_few_samples) AppendFormat(text, "most    {}\n", kFewSamples);
  if (!growth.where) return text;
  AppendFormat(text, "most    {} {} in {}\n", NameOf(growth.most), ChangeText(growth.where_ns),
               PathText(compared.tree, growth.where, frames));
  return text;
}

}  // namespace xpu
