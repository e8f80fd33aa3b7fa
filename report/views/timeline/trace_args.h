// The details of calls and GPU work that a trace shows beside their slices. Keys are those of
// PyTorch's traces where these have one, for the scripts that read them.
#pragma once

#include <string_view>

#include "report/analysis/analysis.h"
#include "report/analysis/overheads.h"
#include "report/views/timeline/trace_sink.h"

namespace xpu {

// Of the slice written last.
void WriteCallArgs(const Launch& launch, TraceSink& sink);
void WriteRangeArgs(const Analysis& analysis, const NvtxRange& range, TraceSink& sink);
void WriteOverheadArgs(const Analysis& analysis, const DriverTime& overhead, TraceSink& sink);
void WriteWorkArgs(const Analysis& analysis, const GpuWork& work, TraceSink& sink);

}  // namespace xpu
