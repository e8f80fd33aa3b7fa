// What is fused in a call that PyTorch's compiler has made, as frames below it, where the capture
// has the text of its files (`xpu-record --sources=hit`): format/fused_calls.h.
//
// The compiler writes names of variables and no lines. Names are shown always. A line of the model
// is shown only for a name that no operator has and that one line alone assigns in a file whose
// functions call compiled code, and of which the capture has the whole text: a wrong line would be
// worse than none. Numbered names (a variable that is assigned again, or in another function) have
// none. What cannot be known is whether a function of another file was compiled with it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "format/fused_calls.h"
#include "report/model/model.h"
#include "report/model/source_parts.h"
#include "report/stacks/frames.h"

namespace xpu {

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

  // By path; in order of their lines.
  std::unordered_map<std::string_view, std::vector<FusedCall>> calls_;
  std::unordered_set<std::string_view> operators_;
  std::deque<std::string> texts_;                                 // that the definitions point into
  std::unordered_map<std::string_view, Definition> definitions_;  // by variable
};

}  // namespace xpu
