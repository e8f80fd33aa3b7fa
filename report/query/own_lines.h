// The line of the program's own code at which a function was, most of some time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/stacks/python_frames.h"

namespace xpu {

class OwnLines {
 public:
  explicit OwnLines(Analysis& analysis)
      : analysis_(analysis),
        lines_(analysis.model, analysis.sources, analysis.frames, {.lines = true}) {}

  // "train.py:main:12": of the innermost function of Python on the path, outermost first, that is
  // not of an installed package; `stacks`: those of Python that the time was spent in. Empty: the
  // path has none.
  std::string Of(const std::vector<FrameId>& path, const std::map<StackId, uint64_t>& stacks);

 private:
  FrameId WithLine(StackId stack, const NamedFrame& function);

  Analysis& analysis_;
  PythonFrames lines_;
};

}  // namespace xpu
