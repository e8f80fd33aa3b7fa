// The lines of a model below a call that PyTorch's compiler has made of them, where the capture has
// the text of its files (`xpu-record --sources=hit`): format/fused_calls.h.
//
// The compiler writes names of variables and no lines. A line is taken for that of a name only if
// it alone gives the variable a value, in the whole text that there is of the program's own
// functions that call compiled code. Names without such a line, and those that operators have
// given, are shown as they are: a wrong line would be worse than none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/fused_calls.h"
#include "report/model/model.h"
#include "report/stacks/frames.h"

namespace xpu {

class FusedFrames {
 public:
  // `model` must outlive this.
  explicit FusedFrames(const Model& model);

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

  void AddDefinitions(const Model& model, std::string_view path);
  const Definition* DefinitionOf(std::string_view node) const;

  std::unordered_map<std::string_view, std::vector<FusedCall>> calls_;  // by path
  std::unordered_map<std::string_view, Definition> definitions_;        // by variable
};

}  // namespace xpu
