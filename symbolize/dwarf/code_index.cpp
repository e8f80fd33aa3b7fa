#include "symbolize/dwarf/code_index.h"

#include <dwarf.h>

#include "symbolize/dwarf/entry_walk.h"

namespace xpu::dwarf {
namespace {

// Code to its abstract instance to the declaration in its class; dwz adds a step. Damaged files
// have circles.
constexpr int kMostSteps = 16;

// A pair of addresses, or a list entry, takes two bytes at least.
Budget ListBudget(Dwarf* dwarf) {
  return Budget((BytesOf(dwarf, ".debug_ranges") + BytesOf(dwarf, ".debug_rnglists")) / 2);
}

}  // namespace

CodeIndex::CodeIndex(const DwarfFile& file, const DwarfFile& alternate)
    : file_(file),
      alternate_(alternate),
      ranges_(LiveCode(file.segments()), ListBudget(file.get())),
      line_budget_(BytesOf(file.get(), ".debug_line")) {
  dwarf_setalt(file.get(), alternate.get());
  texts_.Add(file.get());
  texts_.Add(alternate.get());
  // Linkers let what several units say of a function that only the first of them has point to the
  // same code: it is compiled as the first one says. Of several values the largest counts.
  std::vector<RangeMap::Item> items;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die entry;
  uint8_t type = 0;
  if (BytesOf(file.get(), ".debug_info") == 0) return;
  while (dwarf_get_units(file.get(), unit, &unit, nullptr, &type, &entry, nullptr) == 0) {
    if (entry.addr != nullptr) AddUnit(entry, type, items);
  }
  for (RangeMap::Item& item : items) item.value = Reversed(item.value);
  by_address_ = RangeMap(std::move(items));
}

void CodeIndex::AddUnit(Dwarf_Die entry, uint8_t type, std::vector<RangeMap::Item>& items) {
  if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_split_compile) return;
  const auto index = static_cast<uint32_t>(units_.size());
  Unit& unit = units_.emplace_back();
  unit.entry = entry;
  unit.is_skeleton = type == DW_UT_skeleton;
  CodeValues code;
  ForEachAttribute(entry, [&](const Dwarf_Attribute& attribute) { code.Visit(attribute); });
  std::vector<AddressRange> ranges;
  ranges_.Read(entry, code, ranges);
  for (const AddressRange& range : ranges) items.push_back({range, index});
  if (code.has_ranges || code.high_pc.code != 0) return;
  // Only its functions can say where its code is.
  unit.functions = std::make_unique<UnitFunctions>(SplitOf(unit), texts_, ranges_);
  for (const auto& function : unit.functions->functions()) {
    for (const AddressRange& range : function.ranges) items.push_back({range, index});
  }
}

CodePlace CodeIndex::Find(uint64_t link_address) {
  const uint32_t found = by_address_.Find(link_address);
  if (found == RangeMap::kNone) return {};
  Unit& unit = Load(Reversed(found));
  CodePlace place;
  place.lines = unit.lines.get();
  place.function = unit.functions->Find(link_address);
  if (place.function == nullptr) return place;
  auto& inlined = place.function->inlined;
  if (inlined == nullptr) {
    inlined = std::make_unique<InlineTree>(InlineTree::Read(place.function->entry, ranges_));
  }
  place.inlined = inlined.get();
  return place;
}

// A skeleton whose unit is not found may itself have some of the functions.
Dwarf_Die CodeIndex::SplitOf(const Unit& unit) {
  if (!unit.is_skeleton || !MaySplitBeOpened(unit.entry, file_.directory())) return unit.entry;
  Dwarf_Die split{};
  if (dwarf_cu_info(unit.entry.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr) !=
          0 ||
      split.addr == nullptr) {
    return unit.entry;
  }
  Dwarf* file = dwarf_cu_getdwarf(split.cu);
  if (files_of_split_units_.insert(file).second) {
    dwarf_setalt(file, alternate_.get());
    texts_.Add(file);
    ranges_.Allow(ListBudget(file));
  }
  return split;
}

CodeIndex::Unit& CodeIndex::Load(uint32_t index) {
  Unit& unit = units_[index];
  if (unit.lines != nullptr) return unit;
  const Dwarf_Die split = SplitOf(unit);
  if (unit.functions == nullptr) {
    unit.functions = std::make_unique<UnitFunctions>(split, texts_, ranges_);
  }
  unit.lines = std::make_unique<LineTable>(unit.entry, split, texts_, line_budget_);
  return unit;
}

std::string_view CodeIndex::NameOf(Dwarf_Die entry) {
  const auto [found, is_new] = names_.try_emplace(entry.addr);
  if (is_new) found->second = ReadName(entry);
  return found->second;
}

std::string_view CodeIndex::ReadName(Dwarf_Die entry) {
  std::string_view plain;
  for (int step = 0; step < kMostSteps; ++step) {
    Dwarf_Attribute linkage_name{};
    Dwarf_Attribute name{};
    Dwarf_Attribute origin{};
    ForEachAttribute(entry, [&](const Dwarf_Attribute& attribute) {
      if (attribute.code == DW_AT_linkage_name || attribute.code == DW_AT_MIPS_linkage_name) {
        linkage_name = attribute;
      }
      if (attribute.code == DW_AT_name) name = attribute;
      if (attribute.code == DW_AT_abstract_origin) origin = attribute;
      if (attribute.code == DW_AT_specification && origin.code == 0) origin = attribute;
    });
    if (linkage_name.code != 0) {
      const std::string_view linkage = texts_.At(dwarf_formstring(&linkage_name));
      if (!linkage.empty()) return linkage;
    }
    if (plain.empty() && name.code != 0) plain = texts_.At(dwarf_formstring(&name));
    Dwarf_Die next{};
    if (origin.code == 0 || dwarf_formref_die(&origin, &next) == nullptr) break;
    entry = next;
  }
  return plain;
}

}  // namespace xpu::dwarf
