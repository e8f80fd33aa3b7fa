#include "report/gpu_leaves.h"

#include "report/launched_kernel.h"

namespace xpu {

FrameId GpuLeaves::Of(const GpuWork& work) {
  const auto intern = [&] {
    return analysis_.frames.Intern(names_.Leaf(work), FrameOrigin::kGpuWork);
  };
  if (work.kind != WorkKind::kKernel) return intern();
  const uint64_t name = analysis_.model.events.kernels.Get<&Kernel::name>(work.index).value;
  const uint32_t gpu = analysis_.gpus.Of(work.instance, work.device_id).number;
  FrameId& leaf = kernels_[name << 32 | gpu];
  if (!leaf) leaf = intern();
  return leaf;
}

FrameId GpuLeaves::InsteadOf(const Launch& launch) {
  switch (FateOf(launch)) {
    case LaunchFate::kUnmatched:
      return analysis_.frames.Intern("[GPU_Launch_Pending]", FrameOrigin::kPending);
    case LaunchFate::kProbed:
      return analysis_.frames.Intern("[GPU_Launch]" + LaunchedKernel(analysis_, names_, launch),
                                     FrameOrigin::kPending);
    default:
      return FrameId{};
  }
}

}  // namespace xpu
