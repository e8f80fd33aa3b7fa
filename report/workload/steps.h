// The steps of a program: iterations of training, tokens, requests. All views have them from here.
//
// What a step is, is said by the user (the ranges of NVTX or the calls of a function), or found
// out: what a thread launches again and again (recurrence.h). A step begins with its first launch,
// or with its range, on the thread that launches, and lasts until the next one; to it belongs what
// any thread of the process launches meanwhile, whenever the GPU runs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/model/recorded_time.h"

namespace xpu {

struct StepDefinition {
  enum class Kind : uint8_t { kDetected, kNvtx, kFunction };
  Kind kind = Kind::kDetected;
  std::string pattern;  // POSIX extended regular expression
};
// "nvtx:REGEX", "function:REGEX", "auto". kUsage: neither, or the regular expression is none.
Result<StepDefinition> ParseStepDefinition(std::string_view text);

struct Step {
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  bool is_regular = true;  // it launches what most do; of ranges always
};

// The steps of one thread.
struct StepSeries {
  Owner thread;
  std::vector<Step> steps;  // in order, none in another
  size_t first = 0;         // the number of the first of them
  size_t warm_up = 0;       // the first of them, which take far longer than the others
  size_t launches = 0;      // of a regular step on this thread; 0: not known
  size_t regular = 0;
  bool is_detected = false;
  bool begins_by_code = false;  // Recurrence
};

// One for each process that has any, in order of pids. Filters choose processes; what a step of one
// is, they do not change.
std::vector<StepSeries> FindSteps(Analysis& analysis, const StepDefinition& definition);

// When nothing was recorded: pauses, and the time from one recording to the next.
class Interruptions {
 public:
  explicit Interruptions(const Model& model)
      : pauses_(FindPauses(model)), between_(BetweenRecordings(model)) {}
  // Whether a part of that time is.
  bool Cut(uint64_t start_ns, uint64_t end_ns) const {
    return PausedNs(pauses_, start_ns, end_ns) + PausedNs(between_, start_ns, end_ns) > 0;
  }

 private:
  std::vector<Pause> pauses_;
  std::vector<Pause> between_;
};

// A loop that is detected may be none that anybody would call steps: most steps are alike at least.
bool IsCredible(const StepSeries& series);

// "detected: 60 launches repeated, the same in 98 of 100 steps".
std::string HowFound(const StepSeries& series, const StepDefinition& definition);

// The cost of a step.
struct StepCost {
  uint64_t duration_ns = 0;
  uint64_t busy_ns = 0;  // at least one operation of the step ran
  uint64_t idle_ns = 0;  // none did, from its first one to that of the next step
  uint64_t gpu_ns = 0;   // of all operations added up
  uint64_t kernels = 0;
  uint64_t graphs = 0;  // replays recorded as a whole
  uint64_t copies = 0;  // memory operations
  uint64_t bytes = 0;   // of these
  uint64_t end_ns = 0;  // of the last operation; 0: there is none
};
// Returns the cost of each step in the work that is shown.
std::vector<StepCost> StepCosts(const Analysis& analysis, const StepSeries& series);

}  // namespace xpu
