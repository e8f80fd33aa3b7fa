// Stacks of the interpreter's frames (format/stack.h) as named frames.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "format/fused_calls.h"
#include "format/python_lines.h"
#include "report/base/flat_map.h"
#include "report/model/model.h"
#include "report/model/source_parts.h"
#include "report/stacks/frames.h"

namespace xpu {

// Operators fused in a call that PyTorch's compiler has made, as frames below it, where the capture
// has the text of its files (`xpu-record --sources=hit`): format/fused_calls.h.
//
// The compiler writes names of variables and no lines. Names are shown always. A line of the model
// is shown only for a name that no operator has and that one line alone assigns in a file whose
// functions call compiled code, and of which the capture has the whole text: a wrong line would be
// worse than none. Numbered names (a variable that is assigned again, or in another function) have
// none. What cannot be known is whether a function of another file was compiled with it.
class FusedFrames {
 public:
  // Both must outlive this.
  FusedFrames(const Model& model, const SourceParts& sources);

  bool empty() const { return calls_.empty(); }
  // Below the function that stands at a line of such a file, outermost first: what is fused, then
  // each line of the model. Empty: the line is none of a call.
  std::vector<NamedFrame> At(std::string_view path, int64_t line) const;

 private:
  struct Definition {
    std::string_view path;
    uint32_t line = 0;  // 0: there are several
    std::string_view text;
  };

  void FindCalls(std::span<const SourcePart> parts);
  void FindDefinitions(std::span<const SourcePart> parts,
                       const std::unordered_set<std::string_view>& files);
  void AddDefinitions(std::string_view path, std::string_view text);

  // The key is the path; calls are in order of their lines.
  std::unordered_map<std::string_view, std::vector<FusedCall>> calls_;
  std::unordered_set<std::string_view> operators_;
  std::deque<std::string> texts_;                                 // that the definitions point into
  std::unordered_map<std::string_view, Definition> definitions_;  // by variable
};

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

// Whether the frame is of code that carries out an import statement.
bool IsPythonImport(const NamedFrame& frame);
// "torch._dynamo.eval_frame" of ".../site-packages/torch/_dynamo/eval_frame.py".
std::string PythonModuleName(std::string_view path);

}  // namespace xpu
