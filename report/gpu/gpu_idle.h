// What the CPU did while a GPU had nothing to do, and what it waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "report/analysis.h"
#include "report/tables/statistics.h"
#include "report/tree/call_paths.h"

namespace xpu {

// A part of the time between two spans in which a GPU was busy.
struct IdlePart {
  enum class Cause : uint8_t {
    kSample,   // a CPU sample fell into the gap: in events.cpu_samples
    kWait,     // none did, and the gap lies in a synchronisation: in Correlation::work
    kLaunch,   // none did, and what ended the gap was launched in it: in Correlation::launches
    kQueued,   // none did, and what ended it had been launched before: it waited in a queue
    kUnknown,  // none did, and the launch of what ended it is not known
  };
  uint32_t gpu = 0;  // as the report numbers them
  Cause cause = Cause::kUnknown;
  uint32_t index = 0;  // where the cause says
  uint64_t ns = 0;
};

// All gaps of all GPUs, between the first and the last work of each. The time of a gap is divided
// evenly over the samples that fall into it. The parts of a GPU add up to its idle time.
std::vector<IdlePart> FindIdleParts(const Analysis& analysis);

// The call paths of parts:
// the stack of the sample;
// the stack that waits and [no CPU sample];
// thread, [no CPU sample], and the rest of the stack of the launch that ended the gap.
class IdlePaths {
 public:
  // Both must outlive this.
  IdlePaths(Analysis& analysis, CallPaths& paths);

  PathId Of(const IdlePart& part);
  // The thread that the path is of; none for parts without one.
  Owner OwnerOf(const IdlePart& part) const;

 private:
  PathId BehindNoSample(const Launch& launch);

  Analysis& analysis_;
  CallPaths& paths_;
  const FrameId no_sample_;
  const FrameId queued_;
  const FrameId unknown_;
};

// The same by innermost function. With several GPUs, names begin with "GPU 0: ".
std::vector<Statistics> IdleTimes(Analysis& analysis);

// By the call that waits and the kernel or copy that ran meanwhile: "cudaStreamSynchronize:
// gemm(float*)". A synchronisation of a stream waits for its work, others for all work of their
// process. Of what ran at once, the time counts for what began first.
std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names);

}  // namespace xpu
