#include "symbolize/dwarf/range_reader.h"

#include <algorithm>

#include "symbolize/dwarf/constants.h"

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

RangeReader::RangeReader(LiveCode live, const Sections& sections)
    : live_(std::move(live)),
      budget_(sections[Section::kRanges].size() + sections[Section::kRnglists].size()) {}

void RangeReader::Append(uint64_t begin, uint64_t end, std::vector<AddressRange>& ranges) {
  if (begin < end && live_.Holds(begin)) ranges.push_back({.begin = begin, .end = end});
}

void RangeReader::Read(const Unit& unit, const CodeValues& code,
                       std::vector<AddressRange>& ranges) {
  if (!code.ranges.exists()) {
    const auto low = unit.Address(code.low_pc);
    if (!low || !code.high_pc.exists()) return;
    // Since DWARF 4 the end may be written as a size.
    const auto high = unit.Address(code.high_pc);
    Append(*low, high ? *high : *low + code.high_pc.number, ranges);
    return;
  }
  uint64_t offset = code.ranges.number;
  if (unit.format.version < 5) return ReadOld(unit, unit.ranges_base + offset, ranges);
  if (code.ranges.form == kFormRnglistx) {
    const std::string_view lists = unit.sections[Section::kRnglists];
    if (unit.lists_base > lists.size()) return;
    const std::string_view table = lists.substr(unit.lists_base);
    const uint8_t bytes = unit.format.offset_bytes;
    if (offset >= table.size() / bytes) return;
    offset = unit.lists_base + ByteReader(table, offset * bytes).Fixed(bytes);
  }
  ReadLists(unit, offset, ranges);
}

// Pairs of addresses relative to the base; a pair with the largest address sets the base.
void RangeReader::ReadOld(const Unit& unit, uint64_t offset, std::vector<AddressRange>& ranges) {
  ByteReader reader(unit.sections[Section::kRanges], offset);
  const uint8_t bytes = unit.format.address_bytes;
  const uint64_t largest = bytes == 8 ? UINT64_MAX : UINT32_MAX;
  uint64_t base = unit.low_pc;
  while (!reader.empty() && !budget_.spent()) {
    const uint64_t begin = reader.Fixed(bytes);
    const uint64_t end = reader.Fixed(bytes);
    budget_.Spend(uint64_t{2} * bytes);
    if (reader.failed() || (begin == 0 && end == 0)) return;
    if (begin == largest) {
      base = end;
    } else {
      Append(base + begin, base + end, ranges);
    }
  }
}

void RangeReader::ReadLists(const Unit& unit, uint64_t offset, std::vector<AddressRange>& ranges) {
  ByteReader reader(unit.sections[Section::kRnglists], offset);
  const uint8_t bytes = unit.format.address_bytes;
  uint64_t base = unit.low_pc;
  const auto indexed = [&] { return unit.AddressByIndex(reader.Uleb()).value_or(UINT64_MAX); };
  while (!reader.empty() && !budget_.spent()) {
    const uint64_t before = reader.offset();
    const uint8_t kind = reader.U8();
    uint64_t begin = 0;
    uint64_t end = 0;
    switch (kind) {
      case kRleBaseAddressx:
        base = indexed();
        break;
      case kRleBaseAddress:
        base = reader.Fixed(bytes);
        break;
      case kRleStartxEndx:
        begin = indexed();
        end = indexed();
        break;
      case kRleStartxLength:
        begin = indexed();
        end = begin + reader.Uleb();
        break;
      case kRleOffsetPair:
        begin = base + reader.Uleb();
        end = base + reader.Uleb();
        break;
      case kRleStartEnd:
        begin = reader.Fixed(bytes);
        end = reader.Fixed(bytes);
        break;
      case kRleStartLength:
        begin = reader.Fixed(bytes);
        end = begin + reader.Uleb();
        break;
      default:  // the end of the list, or what is not known
        return;
    }
    budget_.Spend(reader.offset() - before);
    if (reader.failed()) return;
    Append(begin, end, ranges);
  }
}

}  // namespace xpu::dwarf
