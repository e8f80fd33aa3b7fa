// The functions of a unit that have code, and what was inlined into one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <elfutils/libdw.h>

#include "symbolize/dwarf/code_ranges.h"
#include "symbolize/dwarf/dwarf_file.h"
#include "symbolize/dwarf/range_map.h"

namespace xpu::dwarf {

// A function inlined into another one, at a place of it.
struct InlinedCall {
  Dwarf_Die entry;                    // which refers to the function
  uint32_t parent = RangeMap::kNone;  // the InlinedCall it lies in; kNone: in the function itself
  uint32_t call_file = 0;             // of the unit's files
  uint32_t call_line = 0;
};

struct InlineTree {
  std::vector<InlinedCall> calls;  // parents first
  RangeMap map;                    // to the innermost of `calls`

  static InlineTree Read(Dwarf_Die function, CodeRanges& ranges);
};

class UnitFunctions {
 public:
  struct Function {
    Dwarf_Die entry;
    std::vector<AddressRange> ranges;
    std::unique_ptr<InlineTree> inlined;  // nullptr: not read yet
  };

  // One pass over the entries of the unit, past those that hold no code (7.2 million of a program
  // of 133 MB, 2.7 million without): types but for what may be a lambda, variables, what is inlined
  // into a function.
  UnitFunctions(Dwarf_Die unit, const Texts& texts, CodeRanges& ranges);

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
