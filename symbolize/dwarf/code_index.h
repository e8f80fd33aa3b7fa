// From an address to its unit, function and lines. Units are read when they are hit.
//
// libdw's own look-ups take 100 to 3800 us an address (dwarf_addrdie, dwarf_getscopes): they walk a
// unit for each one. Here each unit is walked once.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbolize/dwarf/code_ranges.h"
#include "symbolize/dwarf/dwarf_file.h"
#include "symbolize/dwarf/line_table.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/dwarf/unit_functions.h"

namespace xpu::dwarf {

// What is known of an address; a pointer is nullptr where nothing is.
struct CodePlace {
  UnitFunctions::Function* function = nullptr;
  const InlineTree* inlined = nullptr;  // of `function`
  LineTable* lines = nullptr;
};

class CodeIndex {
 public:
  // Both must outlive this.
  CodeIndex(const DwarfFile& file, const DwarfFile& alternate);

  bool empty() const { return units_.empty(); }
  CodePlace Find(uint64_t link_address);
  // The linkage name, else the plain one, of a function's entry or of what it refers to. Empty:
  // none.
  std::string_view NameOf(Dwarf_Die entry);

 private:
  struct Unit {
    Dwarf_Die entry;
    bool is_skeleton = false;
    std::unique_ptr<UnitFunctions> functions;
    std::unique_ptr<LineTable> lines;
  };

  void AddUnit(Dwarf_Die entry, uint8_t type, std::vector<RangeMap::Item>& items);
  uint32_t Reversed(uint32_t index) const {
    return static_cast<uint32_t>(units_.size() - 1 - index);
  }
  Unit& Load(uint32_t index);
  Dwarf_Die SplitOf(const Unit& unit);
  std::string_view ReadName(Dwarf_Die entry);

  const DwarfFile& file_;
  const DwarfFile& alternate_;
  CodeRanges ranges_;
  Budget line_budget_;
  Texts texts_;
  std::vector<Unit> units_;
  RangeMap by_address_;  // to units_, reversed
  std::set<Dwarf*> files_of_split_units_;
  std::unordered_map<const void*, std::string_view> names_;  // by the address of the entry
};

}  // namespace xpu::dwarf
