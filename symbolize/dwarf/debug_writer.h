// DWARF 5 of a few functions, for a symbol slice.
#pragma once

#include <string>
#include <vector>

#include "symbolize/dwarf/source_function.h"

namespace xpu {

struct DebugSectionBytes {
  std::string name;  // ".debug_info"
  std::string bytes;
};

// One unit with the names, ranges, inlined functions and line rows of `functions` and nothing else:
// in an ELF file with these sections DebugInfo (and every other reader of DWARF) says the same of
// each address of the functions as where they come from, and nothing of others. Equal input gives
// equal bytes; no functions give no sections.
std::vector<DebugSectionBytes> WriteDebugSections(std::vector<SourceFunction> functions);

}  // namespace xpu
