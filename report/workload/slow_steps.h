// The slowest steps beside those of median duration (--slow-steps).
//
// The slowest tenth of each thread's steps is compared with the middle half: one median step alone
// has few CPU samples, and is as odd as any single step. All numbers are per step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/query/call_tree_builder.h"
#include "report/workload/steps.h"

namespace xpu {

// Some steps of each thread.
struct StepGroup {
  std::vector<StepSeries> series;
  size_t count = 0;
  uint64_t total_ns = 0;  // of their durations

  // The average of one step.
  uint64_t average_ns() const { return PerStep(total_ns); }
  uint64_t PerStep(uint64_t sum) const { return count == 0 ? 0 : sum / count; }
};

struct SlowSteps {
  StepGroup slow;
  StepGroup median;
  size_t steps = 0;                  // all after the warm-up
  std::vector<size_t> slowest = {};  // their numbers, if all are of one thread; the slowest first
};

// kUsage: there are too few steps.
Result<SlowSteps> FindSlowSteps(const std::vector<StepSeries>& all);

// Time of one step by call path: CPU, GPU, and idle GPU time under what the CPU did
// (call_tree_builder.h).
struct StepComparison {
  CallTree tree;                    // of a slow step
  std::vector<uint64_t> median_ns;  // of a median step: by path - 1
  // Counts of all steps of the two groups; the tree has the samples of the slow ones.
  std::vector<uint64_t> median_counts = {};  // by path - 1
  size_t slow_steps = 0;
  size_t median_steps = 0;
};
// `slow` and `median` show the one and the other group, and share their trace.
StepComparison CompareSteps(const SlowSteps& steps, Analysis& slow, Analysis& median,
                            TreeOptions options);

// The time that a slow step takes more than a median one, by kind.
struct StepGrowth {
  // The kind follows from the innermost frame.
  enum class Kind : uint8_t { kCpu, kGpu, kIdle };
  static constexpr size_t kKinds = 3;
  static Kind KindOf(const NamedFrame& leaf);

  double more_ns[kKinds] = {};  // less: negative
  Kind most = Kind::kCpu;       // idle or busy GPU time, if one of these grows
  // The path that has most of it, as deep as one of those below it has half of what it has; none:
  // nothing grows, or only CPU time of which there are too few samples.
  PathId where;
  double where_ns = 0;
  bool has_few_samples = false;
};
// "CPU", "GPU", "idle GPU".
std::string_view NameOf(StepGrowth::Kind kind);
StepGrowth FindGrowth(const StepComparison& compared, const FrameTable& frames);

// "The slowest 13 take 3.1 ms more (71 %): idle GPU +3 ms, GPU +2 us, CPU +1 ms; idle GPU +2 ms in
// ...".
std::string GrowthText(const SlowSteps& steps, const StepComparison& compared,
                       const FrameTable& frames);
// Lines that say which steps are compared, and what grows.
std::string SlowStepsText(const SlowSteps& steps, const StepComparison& compared,
                          const FrameTable& frames);

}  // namespace xpu
