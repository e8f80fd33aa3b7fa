// Stacks of the interpreter's frames (format/stack.h) as named frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/python_lines.h"
#include "report/model/flat_map.h"
#include "report/model/model.h"
#include "report/stacks/frames.h"
#include "report/stacks/fused_frames.h"

namespace xpu {

// The functions that one entry of the interpreter's loop runs: they lie on one native frame.
struct PythonGroup {
  std::vector<FrameId> frames;  // innermost first; none: only what the interpreter hides
};

struct PythonStack {
  std::vector<PythonGroup> groups;  // innermost first
  bool is_whole = true;             // else the outermost functions are not known
  // The innermost native frame of the program is the loop that runs the innermost group. Versions
  // before 3.11 do not show it.
  bool is_on_top = false;
  bool is_top_known = true;
  size_t walked = 0;  // frames of the interpreter
};

class PythonFrames {
 public:
  // All must outlive this.
  PythonFrames(const Model& model, const SourceParts& sources, FrameTable& frames,
               FramePlaces places);

  PythonStack Resolve(StackId stack);
  // Instead of the functions that a stack which is incomplete lacks.
  FrameId cut() const { return cut_; }

 private:
  // kHidden: the interpreter's own, which no traceback shows.
  static constexpr FrameId kHidden{~uint32_t{0}};
  FrameId Name(PythonFrame frame);
  NamedFrame Describe(const PythonCode& code, uint32_t offset);
  std::optional<int64_t> LineOf(const PythonCode& code, uint32_t offset);
  const PythonLines& LinesOf(StringId line_table);
  // Innermost first; none but below calls of compiled code.
  const std::vector<FrameId>& FusedBelow(PythonFrame frame);
  bool IsHidden(const PythonCode& code);

  const Model& model_;
  FrameTable& frames_;
  const FramePlaces places_;
  std::unordered_map<uint32_t, const PythonCode*> codes_;
  std::unordered_map<StringId, PythonLines> lines_;
  FlatMap<FrameId> names_;  // by PythonFrame::Bits() of a frame that is no entry
  const FusedFrames fused_;
  std::unordered_map<uint64_t, std::vector<FrameId>> fused_below_;  // as names_
  const FrameId unknown_;
  const FrameId cut_;
};

// Of the code that carries out an import statement.
bool IsPythonImport(const NamedFrame& frame);
// "torch._dynamo.eval_frame" of ".../site-packages/torch/_dynamo/eval_frame.py".
std::string PythonModuleName(std::string_view path);

}  // namespace xpu
