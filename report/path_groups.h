// What --by puts before a path: the thread, process, stream or GPU that its time belongs to.
#pragma once

#include "report/analysis.h"
#include "report/call_paths.h"
#include "report/call_tree.h"
#include "report/flat_map.h"
#include "report/merge.h"

namespace xpu {

class PathGroups {
 public:
  // Both must outlive this; the paths are those of `tree`.
  PathGroups(Analysis& analysis, CallTree& tree, GroupBy by);

  // `path` below the frame of its group; `path` itself when nothing is to be put before it.
  PathId OfCpu(const Owner& owner, PathId path);
  PathId OfWork(const GpuWork& work, PathId path);
  // Of the time in which a GPU, none of its streams, had nothing to do.
  PathId OfIdle(uint32_t gpu, const Owner& owner, PathId path);

 private:
  FrameId ThreadOrProcess(const Owner& owner);
  FrameId StreamOrDevice(const GpuWork& work);
  PathId Under(FrameId group, PathId path);

  Analysis& analysis_;
  CallTree& tree_;
  const GroupBy by_;
  FrameId cpu_;
  FlatMap<FrameId> frames_;  // by process and thread, or GPU and stream
  FlatMap<PathId> moved_;    // by group and path
};

}  // namespace xpu
