// What --by and --nvtx-frames put before a path: the thread, process, stream or GPU that its time
// belongs to, then the ranges that the program marked around it.
#pragma once

#include <cstdint>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/model/flat_map.h"

namespace xpu {

// What paths begin with, before the name of the thread.
enum class GroupBy : uint8_t {
  kNothing,
  kThread,   // "worker/4712"
  kProcess,  // "python3/4711"
  kStream,   // "GPU0/stream7"; CPU samples and calls: "[CPU]"
  kDevice,   // "GPU0"; likewise
};

class PathGroups {
 public:
  // Both must outlive this; the paths are those of `tree`.
  PathGroups(Analysis& analysis, CallTree& tree, GroupBy by, bool nvtx_frames);

  // Nothing is put before any path.
  bool IsNone() const { return by_ == GroupBy::kNothing && !nvtx_frames_; }
  // `path` below the frames of its group; `path` itself when nothing is to be put before it.
  PathId OfCpu(const Owner& owner, PathId path);
  PathId OfCall(const Launch& launch, PathId path);
  PathId OfWork(const GpuWork& work, PathId path);
  // Of the time in which a GPU, none of its streams, had nothing to do.
  PathId OfIdle(uint32_t gpu, const Owner& owner, PathId path);

 private:
  FrameId ThreadOrProcess(const Owner& owner);
  FrameId StreamOrDevice(const GpuWork& work);
  PathId InGroup(FrameId group, PathId path) { return Under(tree_.Child(PathId{}, group), path); }
  PathId InRanges(const NvtxRanges::Around& around, PathId path);
  PathId Under(PathId prefix, PathId path);

  Analysis& analysis_;
  CallTree& tree_;
  const GroupBy by_;
  const bool nvtx_frames_;
  FrameId cpu_;
  FlatMap<FrameId> frames_;  // by process and thread, or GPU and stream
  FlatMap<PathId> ranges_;   // by what is open around
  FlatMap<PathId> moved_;    // by prefix and path
};

}  // namespace xpu
