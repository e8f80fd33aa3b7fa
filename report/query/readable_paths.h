// Call paths as a person reads them: the Python functions where there are any, with imports of
// packages as one frame, C++ functions without parameters and template arguments, nothing that has
// no name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/base/flat_map.h"

namespace xpu {

class ReadablePaths {
 public:
  // Both must outlive this; the paths are those of `tree`.
  ReadablePaths(Analysis& analysis, CallTree& tree) : analysis_(analysis), tree_(tree) {}

  PathId Of(PathId path);
  // "train.py:step > train.py:lookup": the innermost functions of the program's own on a path, at
  // most three; "unknown code": there are none.
  std::string OwnFunctions(PathId path);

 private:
  std::vector<FrameId> WithPython(const std::vector<FrameId>& path);
  std::optional<std::string> ImportAt(const std::vector<FrameId>& path, size_t at) const;
  std::vector<FrameId> Native(const std::vector<FrameId>& path) const;
  FrameId Bare(FrameId frame);

  Analysis& analysis_;
  CallTree& tree_;
  FlatMap<PathId> known_;
  FlatMap<FrameId> bare_;
};

// ReadablePaths::OwnFunctions of the last sample, wait or call of the thread, if it has Python
// functions of the last one with these: a thread that is ended is in the kernel at last.
std::string LastPlaceOf(const Analysis& analysis, CallPaths& paths, ReadablePaths& readable,
                        uint32_t pid, uint32_t tid);

}  // namespace xpu
