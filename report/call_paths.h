// Paths of samples and launches in a call tree: name of the thread, frames, call.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>

#include "report/analysis.h"
#include "report/call_tree.h"

namespace xpu {

// The process and thread that something belongs to, at its time.
struct Owner {
  ProcessId process;
  uint32_t tid = 0;  // 0: not known
  uint64_t time_ns = 0;
};
Owner OwnerOf(const Analysis& analysis, const CpuSample& sample);
Owner OwnerOf(const Analysis& analysis, const Launch& launch);
Owner OwnerOf(const Analysis& analysis, const GpuWork& work);

class CallPaths {
 public:
  // `keep_internal_frames`: launches keep the frames of CUDA and of our own library.
  CallPaths(Analysis& analysis, bool keep_internal_frames);

  PathId OfSample(const CpuSample& sample);
  // Ends with the name of the CUDA call.
  PathId OfLaunch(const Launch& launch);
  // The launch of the work, or [unknown launch] when it has none.
  PathId OfWork(const GpuWork& work);

  CallTree& tree() { return tree_; }

 private:
  struct Key {
    StackId stack;
    SpaceId space;
    FrameId comm;
    FrameId api;  // none: a CPU sample
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    size_t operator()(const Key& key) const;
  };

  FrameId Comm(const Owner& owner);
  PathId UnknownLaunch(const Owner& owner, FrameId api);
  PathId AddFrames(PathId path, std::span<const FrameId> innermost_first);

  Analysis& analysis_;
  const bool keep_internal_frames_;
  CallTree tree_;
  const FrameId unknown_;
  const FrameId unknown_launch_;
  std::unordered_map<Key, PathId, HashKey> paths_;  // of stacks that are the same at any time
  std::unordered_map<std::string_view, FrameId> comms_;
};

}  // namespace xpu
