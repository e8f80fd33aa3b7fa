#include "symbolize/dwarf/unit.h"

#include "symbolize/dwarf/constants.h"

namespace xpu::dwarf {
namespace {

bool IsIndexOfText(uint16_t form) {
  return (form >= kFormStrx1 && form <= kFormStrx4) || form == kFormStrx ||
         form == kFormGnuStrIndex;
}

bool IsIndexOfAddress(uint16_t form) {
  return (form >= kFormAddrx1 && form <= kFormAddrx4) || form == kFormAddrx ||
         form == kFormGnuAddrIndex;
}

// Where the entries of a table begin that no attribute points to: behind its header.
uint64_t DefaultBase(UnitFormat format, uint64_t header_bytes_32, uint64_t header_bytes_64) {
  if (format.version < 5) return 0;
  return format.offset_bytes == 8 ? header_bytes_64 : header_bytes_32;
}

// A number of `bytes` at `base` + `index` * `bytes`.
std::optional<uint64_t> Indexed(std::string_view table, uint64_t base, uint64_t index,
                                uint8_t bytes) {
  if (base > table.size() || index >= (table.size() - base) / bytes) return std::nullopt;
  return ByteReader(table, base + index * bytes).Fixed(bytes);
}

}  // namespace

void CodeValues::Visit(uint16_t attribute, const FormValue& value) {
  if (attribute == kAtLowPc) low_pc = value;
  if (attribute == kAtHighPc) high_pc = value;
  if (attribute == kAtRanges) ranges = value;
}

std::optional<Unit> Unit::ReadHeader(ByteReader& reader) {
  Unit unit;
  unit.offset = reader.offset();
  const UnitLength length = reader.ReadUnitLength();
  const uint64_t content_at = reader.offset();
  ByteReader header(reader.Take(length.bytes));
  if (reader.failed()) return std::nullopt;
  unit.end = reader.offset();
  unit.format.offset_bytes = length.offset_bytes;
  unit.format.version = header.U16();
  unit.type = kUnitCompile;
  if (unit.format.version >= 5) {
    unit.type = header.U8();
    unit.format.address_bytes = header.U8();
    unit.abbreviations_at = header.Fixed(length.offset_bytes);
    if (unit.type == kUnitSkeleton || unit.type == kUnitSplitCompile) unit.split_id = header.U64();
  } else {
    unit.abbreviations_at = header.Fixed(length.offset_bytes);
    unit.format.address_bytes = header.U8();
  }
  unit.first_entry = content_at + header.offset();
  const bool known = unit.format.version >= 2 && unit.format.version <= 5 &&
                     (unit.format.address_bytes == 8 || unit.format.address_bytes == 4);
  // One that is not known is stepped over.
  if (header.failed() || !known) unit.type = 0;
  unit.texts_base = DefaultBase(unit.format, 8, 16);
  unit.addresses_base = DefaultBase(unit.format, 8, 16);
  unit.lists_base = DefaultBase(unit.format, 12, 20);
  return unit;
}

void Unit::ReadFirstEntry(ByteReader reader, const AbbreviationTable& abbreviations,
                          const Sections& of_file) {
  sections = of_file;
  const Abbreviation* abbreviation = abbreviations.Find(reader.Uleb());
  if (abbreviation == nullptr) return;
  tag = abbreviation->tag;
  // Texts and addresses by index can come before the bases that they count from.
  FormValue name_value;
  FormValue folder_value;
  FormValue split_value;
  abbreviations.Read(reader, *abbreviation, [&](uint16_t attribute, const FormValue& value) {
    code.Visit(attribute, value);
    if (attribute == kAtName) name_value = value;
    if (attribute == kAtCompDir) folder_value = value;
    if (attribute == kAtDwoName || attribute == kAtGnuDwoName) split_value = value;
    if (attribute == kAtGnuDwoId) split_id = value.number;
    if (attribute == kAtStmtList) lines_at = value.number;
    if (attribute == kAtStrOffsetsBase) texts_base = value.number;
    if (attribute == kAtAddrBase || attribute == kAtGnuAddrBase) addresses_base = value.number;
    if (attribute == kAtRnglistsBase) lists_base = value.number;
    if (attribute == kAtGnuRangesBase) split_ranges_base = value.number;
  });
  name = Text(name_value);
  folder = Text(folder_value);
  split_name = Text(split_value);
  low_pc = Address(code.low_pc).value_or(0);
}

bool Unit::is_type() const {
  return type == 0 || type == kUnitType || type == kUnitSplitType || type == kUnitPartial;
}

std::string_view Unit::Text(const FormValue& value) const {
  switch (value.form) {
    case kFormString:
      return value.text;
    case kFormStrp:
      return TextAt(sections[Section::kStr], value.number);
    case kFormLineStrp:
      return TextAt(sections[Section::kLineStr], value.number);
    case kFormStrpSup:
    case kFormGnuStrpAlt:
      if (alternate == nullptr) return {};
      return TextAt((*alternate)[Section::kStr], value.number);
    default:
      break;
  }
  if (!IsIndexOfText(value.form)) return {};
  const auto at =
      Indexed(sections[Section::kStrOffsets], texts_base, value.number, format.offset_bytes);
  return at ? TextAt(sections[Section::kStr], *at) : std::string_view();
}

std::optional<uint64_t> Unit::Address(const FormValue& value) const {
  if (value.form == kFormAddr) return value.number;
  if (IsIndexOfAddress(value.form)) return AddressByIndex(value.number);
  return std::nullopt;
}

std::optional<uint64_t> Unit::AddressByIndex(uint64_t index) const {
  return Indexed(sections[Section::kAddr], addresses_base, index, format.address_bytes);
}

std::optional<uint64_t> Unit::LocalReference(const FormValue& value) const {
  switch (value.form) {
    case kFormRef1:
    case kFormRef2:
    case kFormRef4:
    case kFormRef8:
    case kFormRefUdata:
      break;
    default:
      return std::nullopt;
  }
  if (value.number >= end - offset) return std::nullopt;
  return offset + value.number;
}

}  // namespace xpu::dwarf
