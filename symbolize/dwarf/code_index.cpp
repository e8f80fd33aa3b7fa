#include "symbolize/dwarf/code_index.h"

namespace xpu::dwarf {

CodeIndex::CodeIndex(DebugFile& debug, LiveCode live, SplitUnits split)
    : debug_(debug),
      ranges_(std::move(live), debug.sections()),
      line_budget_(debug.sections()[Section::kLine].size()),
      split_(std::move(split)),
      units_(debug.units().size()) {
  // Linkers let what several units say of a function that only the first of them has point to the
  // same code: it is compiled as the first one says. Of several values the largest counts.
  std::vector<RangeMap::Item> items;
  for (uint32_t index = 0; index < units_.size(); ++index) AddRangesOf(index, items);
  for (RangeMap::Item& item : items) item.value = Reversed(item.value);
  by_address_ = RangeMap(std::move(items));
}

void CodeIndex::AddRangesOf(uint32_t index, std::vector<RangeMap::Item>& items) {
  const Unit& unit = debug_.units()[index];
  if (unit.is_type()) return;
  std::vector<AddressRange> ranges;
  ranges_.Read(unit, unit.code, ranges);
  for (const AddressRange& range : ranges) items.push_back({range, index});
  if (unit.code.ranges.exists() || unit.code.high_pc.exists()) return;
  // Only its functions can say where its code is.
  units_[index].functions = ReadFunctions(unit);
  for (const auto& function : units_[index].functions->functions()) {
    for (const AddressRange& range : function.ranges) items.push_back({range, index});
  }
}

CodePlace CodeIndex::Find(uint64_t link_address) {
  const uint32_t found = by_address_.Find(link_address);
  if (found == RangeMap::kNone) return {};
  UnitCode& unit = Load(Reversed(found));
  CodePlace place;
  place.lines = unit.lines;
  place.function = unit.functions->Find(link_address);
  if (place.function == nullptr) return place;
  auto& inlined = place.function->inlined;
  if (inlined == nullptr) {
    inlined = std::make_unique<InlineTree>(InlineTree::Read(place.function->entry, ranges_));
  }
  place.inlined = inlined.get();
  return place;
}

CodeIndex::UnitCode& CodeIndex::Load(uint32_t index) {
  UnitCode& code = units_[index];
  const Unit& unit = debug_.units()[index];
  if (code.functions == nullptr) code.functions = ReadFunctions(unit);
  if (code.lines == nullptr) code.lines = Lines(unit);
  return code;
}

std::unique_ptr<UnitFunctions> CodeIndex::ReadFunctions(const Unit& unit) {
  // A skeleton whose unit is not found may itself have some of the functions.
  const Unit* split = unit.split_name.empty() ? nullptr : split_.Find(unit);
  return std::make_unique<UnitFunctions>(split == nullptr ? unit : *split, ranges_);
}

LineTable* CodeIndex::Lines(const Unit& unit) {
  auto& table = lines_[unit.lines_at.value_or(UINT64_MAX)];
  if (table == nullptr) table = std::make_unique<LineTable>(unit, ranges_.live(), line_budget_);
  return table.get();
}

}  // namespace xpu::dwarf
