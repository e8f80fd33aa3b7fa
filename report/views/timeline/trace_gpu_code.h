// What samples say of a kernel's code, beside its slices.
#pragma once

#include <map>
#include <string>

#include "report/analysis/analysis.h"
#include "report/query/code_samples.h"
#include "report/views/timeline/trace_sink.h"

namespace xpu {

class TraceGpuCode {
 public:
  // `analysis` must outlive this.
  explicit TraceGpuCode(Analysis& analysis) : samples_(analysis) {}

  // Of the slice written last. The numbers are those of all kernels of the name: a sample does not
  // say which one it is of.
  void WriteArgs(const GpuWork& work, TraceSink& sink);

 private:
  struct Texts {
    uint64_t samples = 0;
    std::string line;
    std::string stalls;
  };
  Texts MakeTexts(const CodeSamples::Functions& functions) const;

  CodeSamples samples_;
  std::map<const CodeSamples::Functions*, Texts> texts_;
};

}  // namespace xpu
