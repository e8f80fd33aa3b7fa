// Hints what to look at next, computed from the capture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/query/gpu_busy.h"
#include "report/workload/steps.h"

namespace xpu {

struct Hint {
  std::string what;       // a sentence with the numbers that make it true
  std::string next;       // the command that shows more, without "xpu-report", filters and capture
  std::string time = {};  // for --time, where the command is about a part; empty: it is about all
};

// At most four, the most telling first. `filter`: the one that was applied. `steps`: of the
// processes, if all of the capture is shown.
std::vector<Hint> FindHints(Analysis& analysis, const std::vector<GpuBusy>& gpus,
                            const std::vector<StepSeries>& steps, const FilterOptions& filter = {});

// In idle_hints.cpp. Why a GPU had nothing to do: before its steady state, in it, and after its
// last work. About the GPU that was idle the longest, the largest part of the elapsed time first.
// What comes before the steady state is paid once: the steady state is first where it is not too
// short.
std::vector<Hint> FindIdleHints(Analysis& analysis, const std::vector<GpuBusy>& gpus,
                                const FilterOptions& filter);

// In summary_steps.cpp. What would make steps shorter. nullopt: there are no steps, they are a
// small part of the recording, nothing stands out, or a filter shows a part. `most_calls`: if there
// are more calls and waits, it is of some steps in the middle, which have about so many. What would
// help is the same in all of them, and the path of ten million calls takes longer to find than
// everything else in the summary.
std::optional<Hint> FindCriticalHint(Analysis& analysis, const std::vector<StepSeries>& all,
                                     const FilterOptions& filter, uint64_t most_calls = 500'000);

// " --step WHAT", for commands about the same steps; empty: none was given.
std::string StepOption(const FilterOptions& filter);

// In summary_gpus.cpp. Reports the error that the driver reported for a GPU.
std::optional<Hint> FindXidHint(const Analysis& analysis);

// In summary_gpus.cpp. What limits GPUs as such: power, temperature, the bandwidth of their memory.
std::vector<Hint> FindGpuHints(const Analysis& analysis);

// In memory_hints.cpp. Which code keeps ever more GPU memory, and where an allocator is fragmented.
std::vector<Hint> FindMemoryHints(Analysis& analysis);

// Less than this part of the elapsed time is not worth advice.
inline constexpr double kNegligible = 0.02;

// "5 %", "0.3 %", "over 99 %"
std::string ShareText(double share);

// How long the recording lasted, or the part of it that the filter shows.
uint64_t ElapsedNs(const Analysis& analysis, const FilterOptions& filter);

}  // namespace xpu
