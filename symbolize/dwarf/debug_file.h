// The units of one .debug_info section and the layouts of their entries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "symbolize/dwarf/abbreviations.h"
#include "symbolize/dwarf/unit.h"

namespace xpu::dwarf {

// An entry, by its place in .debug_info.
struct EntryPlace {
  const Unit* unit = nullptr;
  uint64_t offset = 0;
};

class DebugFile {
 public:
  // What `sections` views must outlive this. `alternate`: the file that dwz moved shared entries
  // into, nullptr: none.
  explicit DebugFile(const Sections& sections, DebugFile* alternate = nullptr);
  DebugFile(const DebugFile&) = delete;
  DebugFile& operator=(const DebugFile&) = delete;

  const Sections& sections() const { return sections_; }
  // Those that could be read, ascending.
  const std::vector<Unit>& units() const { return units_; }
  // A split unit gets what its skeleton knows.
  std::vector<Unit>& mutable_units() { return units_; }

  const AbbreviationTable& Abbreviations(const Unit& unit);

  // The entry that a value of one of `unit`'s entries refers to.
  std::optional<EntryPlace> Follow(const Unit& unit, const FormValue& reference) const;

 private:
  std::optional<EntryPlace> At(uint64_t offset) const;

  Sections sections_;
  DebugFile* alternate_;
  Budget abbreviation_budget_;
  using TableKey = std::tuple<uint64_t, uint16_t, uint8_t, uint8_t>;
  std::map<TableKey, std::unique_ptr<AbbreviationTable>> tables_;
  std::vector<Unit> units_;
};

// Steps through an entry and all that is below it, in the order of the file.
class EntryWalk {
 public:
  EntryWalk(const Unit& unit, uint64_t offset);

  // The next entry, the first time the one that was asked for; nullptr: the end, or damage. Its
  // attributes must then be skipped or read.
  const Abbreviation* Next();
  void Skip() { table_->Skip(reader_, *entry_); }
  template <typename Visit>
  void Read(Visit visit) {
    table_->Read(reader_, *entry_, visit);
  }

  uint64_t offset() const { return offset_; }
  uint32_t depth() const { return depth_; }  // of the entry; 0: the first

 private:
  const AbbreviationTable* table_;
  ByteReader reader_;
  const Abbreviation* entry_ = nullptr;
  uint64_t offset_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace xpu::dwarf
