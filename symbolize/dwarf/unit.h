// A compilation unit: what its header and its first entry say.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "symbolize/dwarf/abbreviations.h"
#include "symbolize/dwarf/sections.h"

namespace xpu::dwarf {

class DebugFile;

// Where the code of an entry lies, as it is written.
struct CodeValues {
  FormValue low_pc;
  FormValue high_pc;
  FormValue ranges;

  void Visit(uint16_t attribute, const FormValue& value);
};

struct Unit {
  // The header of the unit at `reader`, which moves behind the unit. The first entry is not read.
  // nullopt: no unit can be read from here on.
  static std::optional<Unit> ReadHeader(ByteReader& reader);
  // Then the first entry. `sections` as of the unit's file.
  void ReadFirstEntry(ByteReader reader, const AbbreviationTable& abbreviations,
                      const Sections& of_file);

  // Holds no code: types, or what several units share.
  bool is_type() const;

  // Values of this unit's entries. nullopt, empty: it has another meaning, or is damaged.
  std::string_view Text(const FormValue& value) const;
  std::optional<uint64_t> Address(const FormValue& value) const;
  std::optional<uint64_t> AddressByIndex(uint64_t index) const;
  // In .debug_info of this file; kFormRefAddr and the references into the alternate file are not.
  std::optional<uint64_t> LocalReference(const FormValue& value) const;

  DebugFile* file = nullptr;
  Sections sections;
  const Sections* alternate = nullptr;  // of the file that dwz moved shared entries into

  UnitFormat format;
  uint8_t type = 0;          // kUnit
  uint64_t offset = 0;       // of the header in .debug_info
  uint64_t first_entry = 0;  // in .debug_info
  uint64_t end = 0;          // in .debug_info
  uint64_t abbreviations_at = 0;

  uint16_t tag = 0;
  std::string_view name;
  std::string_view folder;      // of the compiler
  std::string_view split_name;  // the .dwo file; empty: none
  uint64_t split_id = 0;
  CodeValues code;
  std::optional<uint64_t> lines_at;
  uint64_t texts_base = 0;         // in .debug_str_offsets
  uint64_t addresses_base = 0;     // in .debug_addr
  uint64_t lists_base = 0;         // in .debug_rnglists
  uint64_t ranges_base = 0;        // in .debug_ranges, of split units before DWARF 5
  uint64_t split_ranges_base = 0;  // what a skeleton knows of it
  uint64_t low_pc = 0;             // what offsets in range lists count from
};

}  // namespace xpu::dwarf
