#include "symbolize/dwarf/unit_functions.h"

#include <algorithm>
#include <string_view>

#include <dwarf.h>

#include "symbolize/dwarf/entry_walk.h"
#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {
namespace {

// Of the number of a file or a line: larger ones are damage.
uint32_t NumberOf(Dwarf_Attribute attribute) {
  Dwarf_Word value = 0;
  if (dwarf_formudata(&attribute, &value) != 0) return 0;
  return static_cast<uint32_t>(std::min<Dwarf_Word>(value, UINT32_MAX));
}

struct CallValues {
  CodeValues code;
  uint32_t file = 0;
  uint32_t line = 0;

  void Visit(const Dwarf_Attribute& attribute) {
    code.Visit(attribute);
    if (attribute.code == DW_AT_call_file) file = NumberOf(attribute);
    if (attribute.code == DW_AT_call_line) line = NumberOf(attribute);
  }
};

// The entries around the present one that are inlined calls, with their depths.
class OpenCalls {
 public:
  void LeaveTo(uint32_t depth) {
    while (!open_.empty() && open_.back().depth >= depth) open_.pop_back();
  }
  void Enter(uint32_t depth, uint32_t call) { open_.push_back({depth, call}); }
  uint32_t innermost() const { return open_.empty() ? RangeMap::kNone : open_.back().call; }
  size_t size() const { return open_.size(); }

 private:
  struct Open {
    uint32_t depth;
    uint32_t call;
  };
  std::vector<Open> open_;
};

// C and C++ define the functions of a class outside it; GCC has those of lambdas in theirs.
bool DefinesOutsideOfClasses(Dwarf_Die& unit) {
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
      return true;
    default:
      return false;
  }
}

// "<lambda(int)>", "._anon_3", "__lambda2", or none.
bool MayBeLambda(Dwarf_Die& entry, const Texts& texts) {
  const std::string_view name = texts.At(dwarf_diename(&entry));
  return name.empty() || name[0] == '<' || name[0] == '.' || name.starts_with("__lambda");
}

enum class Holds : uint8_t { kCode, kFunction, kClass, kNothing };

Holds WhatIn(int tag) {
  switch (tag) {
    case DW_TAG_subprogram:
      return Holds::kFunction;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
      return Holds::kClass;
    case DW_TAG_compile_unit:
    case DW_TAG_partial_unit:
    case DW_TAG_skeleton_unit:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_enumeration_type:  // of Rust, Ada: with functions
    case DW_TAG_variant_part:
    case DW_TAG_variant:
      return Holds::kCode;
    default:
      return Holds::kNothing;
  }
}

}  // namespace

UnitFunctions::UnitFunctions(Dwarf_Die unit, const Texts& texts, CodeRanges& ranges) {
  std::vector<RangeMap::Item> items;
  const bool skips_classes = DefinesOutsideOfClasses(unit);
  uint32_t function_depth = UINT32_MAX;  // of the outermost function around the entry
  EntryWalk walk(unit);
  while (walk.Next()) {
    const int tag = walk.tag();
    if (tag < 0 || tag == DW_TAG_invalid) break;
    if (walk.depth() <= function_depth) function_depth = UINT32_MAX;
    const Holds holds = WhatIn(tag);
    if (holds == Holds::kNothing ||
        (skips_classes && (tag == DW_TAG_enumeration_type ||
                           (holds == Holds::kClass && function_depth == UINT32_MAX &&
                            !MayBeLambda(walk.entry(), texts))))) {
      walk.SkipChildren();
      continue;
    }
    if (holds != Holds::kFunction) continue;
    CodeValues code;
    bool is_declaration = false;
    ForEachAttribute(walk.entry(), [&](const Dwarf_Attribute& attribute) {
      code.Visit(attribute);
      if (attribute.code == DW_AT_declaration) is_declaration = true;
    });
    if (is_declaration) {
      walk.SkipChildren();
      continue;
    }
    function_depth = std::min(function_depth, walk.depth());
    Function function;
    function.entry = walk.entry();
    ranges.Read(function.entry, code, function.ranges);
    if (function.ranges.empty()) continue;
    const auto index = static_cast<uint32_t>(functions_.size());
    for (const AddressRange& range : function.ranges) items.push_back({range, index});
    functions_.push_back(std::move(function));
  }
  map_ = RangeMap(std::move(items));
}

InlineTree InlineTree::Read(Dwarf_Die function, CodeRanges& ranges) {
  InlineTree tree;
  std::vector<RangeMap::Item> items;
  std::vector<AddressRange> found;
  OpenCalls open;
  EntryWalk walk(function);
  while (walk.Next()) {
    const uint32_t depth = walk.depth();
    if (depth == 0) continue;
    open.LeaveTo(depth);
    const int tag = walk.tag();
    if (tag != DW_TAG_inlined_subroutine) {
      // What else is below is of other functions, or no code.
      if (WhatIn(tag) != Holds::kCode) walk.SkipChildren();
      continue;
    }
    if (open.size() >= kDeepestInline) {
      walk.SkipChildren();
      continue;
    }
    CallValues values;
    ForEachAttribute(walk.entry(),
                     [&](const Dwarf_Attribute& attribute) { values.Visit(attribute); });
    found.clear();
    ranges.Read(walk.entry(), values.code, found);
    const auto index = static_cast<uint32_t>(tree.calls.size());
    tree.calls.push_back({.entry = walk.entry(),
                          .parent = open.innermost(),
                          .call_file = values.file,
                          .call_line = values.line});
    open.Enter(depth, index);
    for (const AddressRange& range : found) items.push_back({range, index});
  }
  tree.map = RangeMap(std::move(items));
  return tree;
}

}  // namespace xpu::dwarf
