// What PyTorch's compiler (Inductor) says in the Python file that it makes of a graph: above each
// call, from which nodes of the graph and operators it is made. A node has the name of the variable
// that the program's function assigned its value to, so that these names lead to lines of a model.
//
//   # Topologically Sorted Source Nodes: [gate, scaled], Original ATen: [aten.silu, aten.mul]
//   triton_poi_fused_mul_silu_0.run(buf0, buf1, 32768, stream=stream0)
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xpu {

struct FusedCall {
  uint32_t first_line = 0;  // below the comment
  uint32_t last_line = 0;   // of the call itself
  // They point into the text.
  std::vector<std::string_view> nodes;      // "gate", "hidden_12"
  std::vector<std::string_view> operators;  // "aten.silu"
};

// Of a part of a file, which begins at line `first_line`. None in other files.
std::vector<FusedCall> FusedCallsOf(std::string_view text, uint32_t first_line);

// Where functions of a Python file give a variable a value.
struct Binding {
  uint32_t line = 0;
  // "gate = ..." (or annotated, or "gate += ..."), and there is no other one in the file: no other
  // line, loop, unpacking.
  bool is_sole = false;
};
// Of the whole text of a file; empty if it cannot be read to its end. Names point into it.
std::unordered_map<std::string_view, Binding> BindingsOf(std::string_view text);

// Whose functions are not a model's own.
bool IsPyTorchFile(std::string_view path);

}  // namespace xpu
