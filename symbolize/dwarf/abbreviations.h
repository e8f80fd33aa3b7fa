// The layouts of debugging entries (.debug_abbrev).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbolize/dwarf/budget.h"
#include "symbolize/dwarf/byte_reader.h"

namespace xpu::dwarf {

// What the sizes of some forms depend on.
struct UnitFormat {
  uint16_t version = 0;
  uint8_t address_bytes = 8;
  uint8_t offset_bytes = 4;

  bool operator==(const UnitFormat&) const = default;
};

// The value of an attribute as it is written; Unit gives it a meaning.
struct FormValue {
  uint16_t form = 0;  // 0: the entry has no such attribute
  uint64_t number = 0;
  std::string_view text;  // of kFormString

  bool exists() const { return form != 0; }
};

FormValue ReadForm(ByteReader& reader, UnitFormat format, uint16_t form, int64_t implicit);

struct AttributeSpec {
  uint16_t name = 0;
  uint16_t form = 0;
  int64_t implicit = 0;
};

struct Abbreviation {
  uint16_t tag = 0;
  bool has_children = false;
  bool has_code = false;  // kAtLowPc or kAtRanges
  uint32_t first_attribute = 0;
  uint32_t attribute_count = 0;
  uint32_t first_step = 0;
  uint32_t step_count = 0;
};

class AbbreviationTable {
 public:
  AbbreviationTable(std::string_view section, uint64_t offset, UnitFormat format, Budget& budget);

  // nullptr: the code is not defined.
  const Abbreviation* Find(uint64_t code) const {
    if (code - 1 < abbreviations_.size()) [[likely]]
      return &abbreviations_[code - 1];
    const auto found = others_.find(code);
    return found == others_.end() ? nullptr : &found->second;
  }

  // Moves behind the attributes of an entry.
  void Skip(ByteReader& reader, const Abbreviation& abbreviation) const {
    const Step* step = steps_.data() + abbreviation.first_step;
    for (const Step* end = step + abbreviation.step_count; step != end; ++step) {
      reader.Skip(step->bytes);
      if (step->form != 0) SkipForm(reader, step->form);
    }
  }

  // Calls `visit(name, value)` for each attribute of an entry.
  template <typename Visit>
  void Read(ByteReader& reader, const Abbreviation& abbreviation, Visit visit) const {
    const AttributeSpec* spec = attributes_.data() + abbreviation.first_attribute;
    for (uint32_t i = 0; i < abbreviation.attribute_count; ++i) {
      visit(spec[i].name, ReadForm(reader, format_, spec[i].form, spec[i].implicit));
    }
  }

 private:
  // Attributes of fixed sizes, which are skipped at once, and behind them one of another.
  struct Step {
    uint32_t bytes = 0;
    uint16_t form = 0;  // 0: none
  };

  void ReadAttributes(ByteReader& reader, Abbreviation& abbreviation);
  void SkipForm(ByteReader& reader, uint16_t form) const;

  UnitFormat format_;
  std::vector<Abbreviation> abbreviations_;  // compilers count the codes from 1
  std::unordered_map<uint64_t, Abbreviation> others_;
  std::vector<AttributeSpec> attributes_;
  std::vector<Step> steps_;
};

}  // namespace xpu::dwarf
