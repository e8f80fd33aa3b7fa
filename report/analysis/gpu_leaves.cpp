#include "report/analysis/gpu_leaves.h"

#include "report/analysis/launched_kernel.h"

namespace xpu {

FrameId GpuLeaves::Of(const GpuWork& work) {
  const auto intern = [&] {
    return analysis_.frames.Intern(names_.Leaf(work), FrameOrigin::kGpuWork);
  };
  const auto known = [&](FlatMap<FrameId>& leaves, uint64_t what) {
    const uint32_t gpu = analysis_.gpus.Of(work.instance, work.device_id).number;
    FrameId& leaf = leaves[what << 32 | gpu];
    if (!leaf) leaf = intern();
    return leaf;
  };
  const LoadedEvents& events = analysis_.model.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return known(kernels_, events.kernels.Get<&Kernel::name>(work.index).value);
    case WorkKind::kMemcpy:
      return known(copies_, uint64_t{1} + events.memcpys.Get<&Memcpy::copy_kind>(work.index));
    case WorkKind::kMemset:
      return known(copies_, 0);
    case WorkKind::kGraph:
    case WorkKind::kSynchronization:
      break;
  }
  return intern();
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
