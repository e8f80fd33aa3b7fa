// Turns filter options into a Selection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <regex.h>

#include "format/base/result.h"
#include "report/analysis/analysis.h"
#include "report/model/recorded_time.h"

namespace xpu {

// A regular expression for names. POSIX's: std::regex needs stack in proportion to the name, and
// names come from captures.
class NamePattern {
 public:
  // Extended syntax. kUsage: it is no regular expression; errors call it `what`.
  static Result<NamePattern> Compile(const std::string& text, std::string_view what);

  // Found anywhere in `name`, up to its first zero byte.
  bool FoundIn(const std::string& name) const;

 private:
  struct Free {
    void operator()(regex_t* pattern) const;
  };
  explicit NamePattern(std::unique_ptr<regex_t, Free> pattern) : pattern_(std::move(pattern)) {}

  std::unique_ptr<regex_t, Free> pattern_;
};

// Checks a regular expression. Returns why `text` is none; empty: it is valid.
std::string CheckPattern(const std::string& text);

// An empty list or text allows all. Within a list one is enough; all lists are combined with AND.
//
// Processes, threads, commands and times choose among everything. Devices, streams, kernels and
// API calls choose GPU work and the calls that started it: CPU samples are none, so they go.
struct FilterOptions {
  std::vector<uint32_t> pids;  // as the recorder saw them
  std::vector<uint32_t> tids;
  std::vector<std::string> comms;  // names of threads or their processes
  std::vector<uint32_t> devices;   // as the report numbers them
  std::vector<uint32_t> streams;
  std::string kernel;  // POSIX extended regular expression, found anywhere in the full name
  std::string api;
  std::string nvtx;       // likewise, in "domain:text" of a range around it
  TimeRange time;         // what overlaps it
  std::string time_text;  // as it was given
  // The options of steps as they were given, for Text() alone: workload/step_selection.h selects
  // them.
  std::string step_text = {};
  std::string steps_text = {};
  std::vector<uint32_t> ranks = {};  // of processes, as Job::NumberOf has them
  std::vector<std::string> hosts = {};
  std::vector<std::string> containers = {};  // as Containers::IsCalled takes them

  bool empty() const;
  // Wants ranges or steps, and not what is between them.
  bool IsOfRanges() const { return !nvtx.empty() || !steps_text.empty(); }
  // Leaves the choice of CPU samples.
  void ForgetGpuWork() {
    devices.clear();
    streams.clear();
    kernel.clear();
    api.clear();
  }
  // "--pid 1,2 --kernel gemm", as a shell takes it.
  std::string Text() const;
};

// Builds the selection for these options; ignores `analysis.shown`. Losses are not attributed to
// parts: they stay. kUsage: a regular expression is invalid.
Result<Selection> SelectPart(const FilterOptions& options, const Analysis& analysis);

// Completes a selection of work and launches: adds the launches that work refers to, and counts.
void FinishSelection(const Analysis& analysis, Selection& shown);

// `--sample 1/N`, a part of a capture that represents all of it: N of "1/N".
Result<uint64_t> ParseSampleRate(std::string_view text);

// Thins a selection: keeps one of each `rate` CPU samples, one of each `rate` calls with all of the
// GPU work that it started, and one of each `rate` operations without a call. Chance decides which
// one of N neighbors is kept, so that programs that repeat themselves after N steps are seen as a
// whole; but it is the same one each time. Views multiply counts and totals by Selection::scale.
// The counts of the correlation stay those of all. Returns a line for standard error.
std::string SelectOneOf(uint64_t rate, const Trace& trace, Selection& shown);

}  // namespace xpu
