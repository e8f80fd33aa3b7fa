// The functions of a unit that have code, and what was inlined into one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "symbolize/dwarf/debug_file.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/dwarf/range_reader.h"

namespace xpu::dwarf {

// A function inlined into another one, at a place of it.
struct InlinedCall {
  EntryPlace origin;                  // the function; no unit: not known
  uint32_t parent = RangeMap::kNone;  // the InlinedCall it lies in; kNone: in the function itself
  uint32_t call_file = 0;             // of the unit's LineTable
  uint32_t call_line = 0;
};

struct InlineTree {
  std::vector<InlinedCall> calls;  // parents first
  RangeMap map;                    // to the innermost of `calls`

  static InlineTree Read(EntryPlace function, RangeReader& ranges);
};

class UnitFunctions {
 public:
  struct Function {
    EntryPlace entry;
    std::vector<AddressRange> ranges;
    std::unique_ptr<InlineTree> inlined;  // nullptr: not read yet
  };

  // One pass over the entries of the unit.
  UnitFunctions(const Unit& unit, RangeReader& ranges);

  // nullptr: none.
  Function* Find(uint64_t link_address) {
    const uint32_t index = map_.Find(link_address);
    return index == RangeMap::kNone ? nullptr : &functions_[index];
  }
  const std::vector<Function>& functions() const { return functions_; }

 private:
  std::vector<Function> functions_;
  RangeMap map_;
};

}  // namespace xpu::dwarf
