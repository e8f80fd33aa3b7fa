// The frame that ends a path of GPU work.
#pragma once

#include "report/analysis/analysis.h"
#include "report/analysis/gpu_names.h"
#include "report/model/flat_map.h"

namespace xpu {

class GpuLeaves {
 public:
  // `analysis` must outlive this.
  GpuLeaves(Analysis& analysis, KernelNames kernel_names, bool device_tags = false)
      : analysis_(analysis), names_(analysis, kernel_names, device_tags) {}

  FrameId Of(const GpuWork& work);
  // In the place of the work of a launch that has none: [GPU_Launch_Pending], [GPU_Launch]kernel
  // for one that only a probe saw. None: no work is missing.
  FrameId InsteadOf(const Launch& launch);

 private:
  Analysis& analysis_;
  const GpuNames names_;
  FlatMap<FrameId> kernels_;  // by name and GPU: their names are long
  FlatMap<FrameId> copies_;   // and sets, by what they are and GPU
};

}  // namespace xpu
