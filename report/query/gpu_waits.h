// What the CPU waited for.
#pragma once

#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/gpu_names.h"
#include "report/query/statistics.h"
#include "report/trace/correlation.h"

namespace xpu {

// A synchronization that held up a thread for some time.
bool IsTimedWait(const Analysis& analysis, const GpuWork& work);

// By the call that waits and the kernel or copy that ran meanwhile: "cudaStreamSynchronize:
// gemm(float*)". A synchronization of a stream waits for its work, others for all work of their
// process. Of what ran at once, the time counts for what began first. Of more waits at once than
// programs have, all that ran counts as "cudaStreamSynchronize: [any work]".
std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names);

}  // namespace xpu
