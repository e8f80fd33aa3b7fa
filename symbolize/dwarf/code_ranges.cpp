#include "symbolize/dwarf/code_ranges.h"

#include <algorithm>

#include <dwarf.h>

namespace xpu::dwarf {

LiveCode::LiveCode(const std::vector<ElfSegment>& segments) {
  for (const ElfSegment& segment : segments) {
    if (!segment.executable) continue;
    ranges_.push_back(
        {.begin = segment.link_address, .end = segment.link_address + segment.memory_bytes});
  }
}

bool LiveCode::Holds(uint64_t link_address) const {
  if (ranges_.empty()) return true;
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const AddressRange& range) {
    return link_address >= range.begin && link_address < range.end;
  });
}

void CodeValues::Visit(const Dwarf_Attribute& attribute) {
  if (attribute.code == DW_AT_low_pc) low_pc = attribute;
  if (attribute.code == DW_AT_high_pc) high_pc = attribute;
  if (attribute.code == DW_AT_ranges) has_ranges = true;
}

void CodeRanges::Append(uint64_t begin, uint64_t end, std::vector<AddressRange>& ranges) const {
  if (begin < end && live_.Holds(begin)) ranges.push_back({.begin = begin, .end = end});
}

void CodeRanges::Read(Dwarf_Die& entry, const CodeValues& values,
                      std::vector<AddressRange>& ranges) {
  if (values.has_ranges) {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    for (ptrdiff_t next = 0; !lists_.spent();) {
      next = dwarf_ranges(&entry, next, &base, &begin, &end);
      lists_.Spend(1);
      if (next <= 0) return;
      Append(begin, end, ranges);
    }
    return;
  }
  Dwarf_Attribute low_pc = values.low_pc;
  Dwarf_Attribute high_pc = values.high_pc;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  if (low_pc.code == 0 || high_pc.code == 0 || dwarf_formaddr(&low_pc, &begin) != 0) return;
  // Since DWARF 4 the end may be written as a size.
  if (dwarf_formaddr(&high_pc, &end) != 0) {
    Dwarf_Word size_bytes = 0;
    if (dwarf_formudata(&high_pc, &size_bytes) != 0) return;
    end = begin + size_bytes;
  }
  Append(begin, end, ranges);
}

}  // namespace xpu::dwarf
