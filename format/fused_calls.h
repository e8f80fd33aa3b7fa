// What PyTorch's compiler (Inductor) says in the Python file that it makes of a graph: above each
// call, from which nodes of the graph and operators it is made. A node has the name of the variable
// that the program's function put its value into, so that these names lead to lines of the model.
//
//   # Topologically Sorted Source Nodes: [gate, scaled], Original ATen: [aten.silu, aten.mul]
//   triton_poi_fused_mul_silu_0.run(buf0, buf1, 32768, stream=stream0)
#pragma once

#include <cstdint>
#include <string_view>
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

// "hidden" of "hidden_12": its number says how often the variable got a value before.
std::string_view VariableOf(std::string_view node);

// "gate" of "    gate = F.silu(x)", also with an annotation or as in "gate += x". Empty: the line
// is no such assignment within a function.
std::string_view AssignedVariable(std::string_view line);

}  // namespace xpu
