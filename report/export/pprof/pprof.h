// A profile for `go tool pprof` and others that read its format.
#pragma once

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/base/output.h"

namespace xpu {

struct PprofOptions {
  KernelNames kernel_names = KernelNames::kFull;
  GraphStacks graph_stacks = GraphStacks::kBoth;
};

// CPU samples and the time of the GPU's work under the stacks that launched it, as in --folded,
// with thread, process, GPU and stream as labels. Waits are left out: the CPU's time has them.
void WritePprof(Analysis& analysis, const PprofOptions& options, Output& output);

std::string ProtobufVersion();

}  // namespace xpu
