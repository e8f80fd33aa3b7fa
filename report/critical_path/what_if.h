// Predicts times if something were faster: the graph with a part of it scaled. And the tables of
// the path.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/critical_path/critical_options.h"
#include "report/critical_path/critical_path.h"
#include "report/query/statistics.h"

namespace xpu {

// The effect of a speedup.
struct Prediction {
  Speedup speedup;
  std::string name;           // of a candidate: the kernel, function or thread
  uint64_t path_ns = 0;       // of what is scaled, on the path
  uint64_t assumed_ns = 0;    // of it, what is assumed
  uint64_t predicted_ns = 0;  // how long the window would take
  uint64_t least_ns = 0;      // with the factor 0: no factor makes more of it
  bool matches = false;       // anything, be it on the path or not
};

// Stretches of one kind at one place, added up.
struct CriticalSum {
  Statistics times;  // without a name
  uint64_t assumed_ns = 0;
  EdgeKind kind = EdgeKind::kRunning;
  std::string thread;  // "python3/4711"
  std::string what;    // the kernel, the reason for a wait; "" for a thread that runs
  PathId path;         // as ReadablePaths has it
};

class WhatIf {
 public:
  // All must outlive this.
  WhatIf(Analysis& analysis, CallPaths& paths, CriticalPath& critical)
      : analysis_(analysis), paths_(paths), critical_(critical) {}

  Prediction Evaluate(const Speedup& speedup);
  // Speedups worth a look: what takes most of the path, each with the factor; at most `most`
  // kernels and `most` threads, and of each of these some functions. What would help most comes
  // first.
  std::vector<Prediction> Candidates(double factor, size_t most);

 private:
  class Scale;
  // Names, each with the kind of what it names.
  using Named = std::vector<std::pair<std::string, Speedup::Kind>>;
  void AddKernels(size_t most, Named& named);
  void AddCode(size_t most, Named& named);
  std::vector<FrameId> FunctionsOf(const std::map<PathId, uint64_t>& times) const;
  uint64_t LeastNs() const;

  Analysis& analysis_;
  CallPaths& paths_;
  CriticalPath& critical_;
};

// The longest total first.
std::vector<CriticalSum> CriticalSums(Analysis& analysis, CallPaths& paths, CriticalPath& critical,
                                      const GpuNames& names);

}  // namespace xpu
