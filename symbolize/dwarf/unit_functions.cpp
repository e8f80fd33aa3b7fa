#include "symbolize/dwarf/unit_functions.h"

#include <algorithm>

#include "symbolize/dwarf/constants.h"
#include "symbolize/dwarf/line_table.h"

namespace xpu::dwarf {
namespace {

// Compilers inline some dozens deep.
constexpr size_t kDeepestInline = 128;

struct CallValues {
  CodeValues code;
  FormValue origin;
  uint64_t file = 0;
  uint64_t line = 0;

  void Visit(uint16_t attribute, const FormValue& value) {
    code.Visit(attribute, value);
    if (attribute == kAtAbstractOrigin) origin = value;
    if (attribute == kAtCallFile) file = value.number;
    if (attribute == kAtCallLine) line = value.number;
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

}  // namespace

UnitFunctions::UnitFunctions(const Unit& unit, RangeReader& ranges) {
  std::vector<RangeMap::Item> items;
  EntryWalk walk(unit, unit.first_entry);
  while (const Abbreviation* entry = walk.Next()) {
    if (entry->tag != kTagSubprogram || !entry->has_code) {
      walk.Skip();
      continue;
    }
    CodeValues code;
    walk.Read([&](uint16_t attribute, const FormValue& value) { code.Visit(attribute, value); });
    Function function;
    function.entry = {.unit = &unit, .offset = walk.offset()};
    ranges.Read(unit, code, function.ranges);
    if (function.ranges.empty()) continue;
    const auto index = static_cast<uint32_t>(functions_.size());
    for (const AddressRange& range : function.ranges) items.push_back({range, index});
    functions_.push_back(std::move(function));
  }
  map_ = RangeMap(std::move(items));
}

InlineTree InlineTree::Read(EntryPlace function, RangeReader& ranges) {
  InlineTree tree;
  std::vector<RangeMap::Item> items;
  std::vector<AddressRange> found;
  OpenCalls open;
  uint32_t nested_at = UINT32_MAX;  // the depth of a function within this one
  EntryWalk walk(*function.unit, function.offset);
  while (const Abbreviation* entry = walk.Next()) {
    const uint32_t depth = walk.depth();
    if (depth <= nested_at) nested_at = UINT32_MAX;
    if (entry->tag == kTagSubprogram && depth > 0 && nested_at == UINT32_MAX) nested_at = depth;
    open.LeaveTo(depth);
    const bool counts = entry->tag == kTagInlinedSubroutine && entry->has_code &&
                        depth < nested_at && open.size() < kDeepestInline;
    if (!counts) {
      walk.Skip();
      continue;
    }
    CallValues values;
    walk.Read([&](uint16_t attribute, const FormValue& value) { values.Visit(attribute, value); });
    const auto origin = function.unit->file->Follow(*function.unit, values.origin);
    const auto index = static_cast<uint32_t>(tree.calls.size());
    tree.calls.push_back({.origin = origin.value_or(EntryPlace()),
                          .parent = open.innermost(),
                          .call_file = AtMost32Bits(values.file),
                          .call_line = AtMost32Bits(values.line)});
    open.Enter(depth, index);
    found.clear();
    ranges.Read(*function.unit, values.code, found);
    for (const AddressRange& range : found) items.push_back({range, index});
  }
  tree.map = RangeMap(std::move(items));
  return tree;
}

}  // namespace xpu::dwarf
