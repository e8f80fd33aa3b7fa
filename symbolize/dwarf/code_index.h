// From an address to its unit, function and line table. Units are read when they are hit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbolize/dwarf/debug_file.h"
#include "symbolize/dwarf/function_names.h"
#include "symbolize/dwarf/line_table.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/dwarf/range_reader.h"
#include "symbolize/dwarf/split_units.h"
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
  // `debug` must outlive this.
  CodeIndex(DebugFile& debug, LiveCode live, SplitUnits split);

  CodePlace Find(uint64_t link_address);
  FunctionNames& names() { return names_; }

 private:
  struct UnitCode {
    std::unique_ptr<UnitFunctions> functions;
    LineTable* lines = nullptr;
  };

  void AddRangesOf(uint32_t index, std::vector<RangeMap::Item>& items);
  uint32_t Reversed(uint32_t index) const {
    return static_cast<uint32_t>(units_.size() - 1 - index);
  }
  UnitCode& Load(uint32_t index);
  std::unique_ptr<UnitFunctions> ReadFunctions(const Unit& unit);
  LineTable* Lines(const Unit& unit);

  DebugFile& debug_;
  RangeReader ranges_;
  Budget line_budget_;
  SplitUnits split_;
  FunctionNames names_;
  std::vector<UnitCode> units_;                           // as those of debug_
  RangeMap by_address_;                                   // to units_, reversed
  std::map<uint64_t, std::unique_ptr<LineTable>> lines_;  // by their place in .debug_line
};

}  // namespace xpu::dwarf
