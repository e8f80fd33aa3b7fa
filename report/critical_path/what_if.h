// What if something took less time: the graph with a part of it scaled. And the tables of the path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/critical_path/critical_options.h"
#include "report/critical_path/critical_path.h"
#include "report/query/statistics.h"

namespace xpu {

// What a change does.
struct Prediction {
  Speedup change;
  uint64_t path_ns = 0;       // of what is scaled, on the path
  uint64_t assumed_ns = 0;    // of it, what is assumed
  uint64_t predicted_ns = 0;  // how long the window would take
  uint64_t least_ns = 0;      // with the factor 0: no factor makes more of it
};

// Stretches of one kind at one place, added up.
struct CriticalSum {
  Statistics times;  // without a name
  uint64_t assumed_ns = 0;
  ArrowKind kind = ArrowKind::kRunning;
  std::string thread;  // "python3/4711"
  std::string what;    // the kernel, the reason for a wait; "" for a thread that runs
  PathId path;         // as ReadablePaths has it
};

class WhatIf {
 public:
  // All must outlive this.
  WhatIf(Analysis& analysis, CallPaths& paths, CriticalPath& critical)
      : analysis_(analysis), paths_(paths), critical_(critical) {}

  Prediction Evaluate(const Speedup& change);
  // Changes worth a look: what takes most of the path, each with the factor. The first is the one
  // that would help most.
  std::vector<Prediction> Candidates(double factor);

 private:
  class Scale;
  std::vector<Speedup> LargestKernels();
  std::vector<Speedup> LargestCode();

  Analysis& analysis_;
  CallPaths& paths_;
  CriticalPath& critical_;
};

// The longest total first.
std::vector<CriticalSum> CriticalSums(Analysis& analysis, CallPaths& paths, CriticalPath& critical,
                                      const GpuNames& names);

}  // namespace xpu
