#include "report/path_groups.h"

#include <limits>

#include "format/base/text.h"

namespace xpu {
namespace {

// One name for one thread, whatever it was called before.
constexpr uint64_t kAtTheEnd = std::numeric_limits<uint64_t>::max();

bool IsOfCpu(GroupBy by) { return by == GroupBy::kThread || by == GroupBy::kProcess; }

}  // namespace

PathGroups::PathGroups(Analysis& analysis, CallTree& tree, GroupBy by)
    : analysis_(analysis), tree_(tree), by_(by), cpu_(analysis.frames.Intern("[CPU]")) {}

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

PathId PathGroups::Under(FrameId group, PathId path) {
  const uint64_t key = uint64_t{group.value} << 32 | path.value;
  if (const PathId known = moved_.Get(key)) return known;
  PathId moved = tree_.Child(PathId{}, group);
  for (const FrameId frame : tree_.Path(path)) moved = tree_.Child(moved, frame);
  return moved_[key] = moved;
}

PathId PathGroups::OfCpu(const Owner& owner, PathId path) {
  if (by_ == GroupBy::kNothing) return path;
  return Under(IsOfCpu(by_) ? ThreadOrProcess(owner) : cpu_, path);
}

PathId PathGroups::OfWork(const GpuWork& work, PathId path) {
  if (by_ == GroupBy::kNothing) return path;
  return Under(IsOfCpu(by_) ? ThreadOrProcess(OwnerOf(analysis_, work)) : StreamOrDevice(work),
               path);
}

PathId PathGroups::OfIdle(uint32_t gpu, const Owner& owner, PathId path) {
  if (by_ == GroupBy::kNothing) return path;
  return Under(
      IsOfCpu(by_) ? ThreadOrProcess(owner) : analysis_.frames.Intern(Format("GPU{}", gpu)), path);
}

}  // namespace xpu
