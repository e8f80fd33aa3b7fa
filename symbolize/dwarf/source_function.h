// What DWARF says of an address and of a function, apart from the file that says it. Addresses are
// link addresses; texts live as long as the DebugInfo that they are of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbolize/dwarf/range_map.h"

namespace xpu {

namespace dwarf {
// In a line table, for code of which nobody knows the file: what addr2line prints of it. gdb 13
// crashes at a file without a name.
inline constexpr char kUnknownFile[] = "??";
// Compilers inline some dozens deep.
inline constexpr uint32_t kDeepestInline = 128;
}  // namespace dwarf

// One function at an address.
struct SourceFrame {
  // The linkage name (mangled) where DWARF has one, else the plain name without its scope:
  // compilers give what is local to a unit none. Empty: assembly, of which only the lines are
  // known.
  std::string_view function;
  std::string_view file;    // as the compiler was given it, with its directory; empty: unknown
  uint32_t line = 0;        // 0: unknown
  bool is_inlined = false;  // into the next one
};

// From `link_address` to the next row, or to the end of the function's range.
struct SourceRow {
  uint64_t link_address = 0;
  std::string_view file;
  uint32_t line = 0;
  bool is_gap = false;  // there is no row for these addresses
};

struct SourceInline {
  std::string_view function;
  std::string_view call_file;
  uint32_t call_line = 0;
  uint32_t parent = dwarf::RangeMap::kNone;  // which of the function's; kNone: itself
  std::vector<dwarf::AddressRange> ranges;   // with those of the ones within
};

struct SourceFunction {
  std::string_view name;
  std::vector<dwarf::AddressRange> ranges;
  std::vector<SourceInline> inlined;  // parents first
  std::vector<SourceRow> rows;        // range after range, ascending
};

}  // namespace xpu
