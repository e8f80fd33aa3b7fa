#include "report/query/path_groups.h"

#include <limits>
#include <string>

#include "format/base/text.h"

namespace xpu {
namespace {

// One name for one thread, whatever it was called before.
constexpr uint64_t kAtTheEnd = std::numeric_limits<uint64_t>::max();

bool IsOfCpu(GroupBy by) { return by == GroupBy::kThread || by == GroupBy::kProcess; }

}  // namespace

PathGroups::PathGroups(Analysis& analysis, CallTree& tree, GroupBy by, bool nvtx_frames)
    : analysis_(analysis),
      tree_(tree),
      by_(by),
      nvtx_frames_(nvtx_frames && !analysis.nvtx.empty()),
      cpu_(analysis.frames.Intern("[CPU]")) {}

FrameId PathGroups::ThreadOrProcess(const Owner& owner) {
  const uint32_t number = by_ == GroupBy::kThread ? owner.tid : owner.pid;
  FrameId& frame = frames_[uint64_t{owner.process.value} << 32 | number];
  if (!frame) {
    const std::string_view name = analysis_.processes.ThreadName(owner.process, number, kAtTheEnd);
    frame = analysis_.frames.Intern(Format("{}/{}", name.empty() ? "[unknown]" : name, number));
  }
  return frame;
}

FrameId PathGroups::StreamOrDevice(const GpuWork& work) {
  const uint32_t gpu = analysis_.gpus.Of(work.instance, work.device_id).number;
  const uint32_t stream = by_ == GroupBy::kStream ? work.stream_id : 0;
  FrameId& frame = frames_[uint64_t{gpu} << 32 | stream];
  if (!frame) {
    frame = analysis_.frames.Intern(by_ == GroupBy::kStream ? Format("GPU{}/stream{}", gpu, stream)
                                                            : Format("GPU{}", gpu));
  }
  return frame;
}

PathId PathGroups::Under(PathId prefix, PathId path) { return tree_.Graft(prefix, path, moved_); }

PathId PathGroups::InRanges(const NvtxRanges::Around& around, PathId path) {
  const uint64_t key = uint64_t{around.thread} << 32 | around.process;
  PathId prefix = ranges_.Get(key);
  if (!prefix) {
    for (const uint32_t range : analysis_.nvtx.RangesOf(around)) {
      const std::string label = analysis_.nvtx.LabelOf(analysis_.nvtx.all()[range]);
      prefix = tree_.Child(prefix, analysis_.frames.Intern("[NVTX]" + label));
    }
    if (!prefix) return path;
    ranges_[key] = prefix;
  }
  return Under(prefix, path);
}

PathId PathGroups::OfCpu(const Owner& owner, PathId path) {
  if (nvtx_frames_) path = InRanges(analysis_.nvtx.At(owner.pid, owner.tid, owner.time_ns), path);
  if (by_ == GroupBy::kNothing) return path;
  return InGroup(IsOfCpu(by_) ? ThreadOrProcess(owner) : cpu_, path);
}

PathId PathGroups::OfCall(const Launch& launch, PathId path) {
  if (nvtx_frames_) path = InRanges(analysis_.nvtx.At(launch), path);
  if (by_ == GroupBy::kNothing) return path;
  return InGroup(IsOfCpu(by_) ? ThreadOrProcess(OwnerOf(analysis_, launch)) : cpu_, path);
}

PathId PathGroups::OfWork(const GpuWork& work, PathId path) {
  if (nvtx_frames_ && work.launch != GpuWork::kNoLaunch) {
    path = InRanges(analysis_.nvtx.At(analysis_.correlation.launches[work.launch]), path);
  }
  if (by_ == GroupBy::kNothing) return path;
  return InGroup(IsOfCpu(by_) ? ThreadOrProcess(OwnerOf(analysis_, work)) : StreamOrDevice(work),
                 path);
}

PathId PathGroups::OfIdle(uint32_t gpu, const Owner& owner, PathId path) {
  if (by_ == GroupBy::kNothing) return path;
  return InGroup(
      IsOfCpu(by_) ? ThreadOrProcess(owner) : analysis_.frames.Intern(Format("GPU{}", gpu)), path);
}

}  // namespace xpu
