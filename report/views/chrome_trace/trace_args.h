// The details of calls and GPU work that a trace shows beside their slices. Keys are those of
// PyTorch's traces where these have one, for the scripts that read them.
#pragma once

#include <string_view>

#include "report/analysis/analysis.h"
#include "report/analysis/overheads.h"
#include "report/views/chrome_trace/trace_writer.h"

namespace xpu {

// Of the slice written last.
void WriteCallArgs(const Launch& launch, TraceWriter& writer);
void WriteRangeArgs(const Analysis& analysis, const NvtxRange& range, TraceWriter& writer);
void WriteOverheadArgs(const Analysis& analysis, const DriverTime& overhead, TraceWriter& writer);
void WriteWorkArgs(const Analysis& analysis, const GpuWork& work, TraceWriter& writer);

}  // namespace xpu
