// A function of a file as SourceFunction.
#pragma once

#include "symbolize/dwarf/code_index.h"
#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {

// `place`: one with a function.
SourceFunction CopyFunction(const CodePlace& place, CodeIndex& index);

}  // namespace xpu::dwarf
