#include "symbolize/dwarf/debug_file.h"

#include <algorithm>

#include "symbolize/dwarf/constants.h"

namespace xpu::dwarf {

DebugFile::DebugFile(const Sections& sections, DebugFile* alternate)
    : sections_(sections),
      alternate_(alternate),
      abbreviation_budget_(sections[Section::kAbbrev].size()) {
  ByteReader reader(sections_[Section::kInfo]);
  while (!reader.empty()) {
    auto unit = Unit::ReadHeader(reader);
    if (!unit) break;
    if (unit->type == 0) continue;
    unit->file = this;
    if (alternate_ != nullptr) unit->alternate = &alternate_->sections();
    ByteReader entry(sections_[Section::kInfo].substr(0, unit->end), unit->first_entry);
    unit->ReadFirstEntry(entry, Abbreviations(*unit), sections_);
    units_.push_back(*unit);
  }
}

const AbbreviationTable& DebugFile::Abbreviations(const Unit& unit) {
  const TableKey key(unit.abbreviations_at, unit.format.version, unit.format.address_bytes,
                     unit.format.offset_bytes);
  auto& table = tables_[key];
  if (table == nullptr) {
    table = std::make_unique<AbbreviationTable>(sections_[Section::kAbbrev], unit.abbreviations_at,
                                                unit.format, abbreviation_budget_);
  }
  return *table;
}

std::optional<EntryPlace> DebugFile::Follow(const Unit& unit, const FormValue& reference) const {
  switch (reference.form) {
    case kFormRefAddr:
      return At(reference.number);
    case kFormGnuRefAlt:
    case kFormRefSup4:
    case kFormRefSup8:
      return alternate_ == nullptr ? std::nullopt : alternate_->At(reference.number);
    default:
      break;
  }
  const auto offset = unit.LocalReference(reference);
  if (!offset) return std::nullopt;
  return EntryPlace{.unit = &unit, .offset = *offset};
}

std::optional<EntryPlace> DebugFile::At(uint64_t offset) const {
  auto after = std::upper_bound(units_.begin(), units_.end(), offset,
                                [](uint64_t at, const Unit& unit) { return at < unit.offset; });
  if (after == units_.begin()) return std::nullopt;
  --after;
  if (offset < after->first_entry || offset >= after->end) return std::nullopt;
  return EntryPlace{.unit = &*after, .offset = offset};
}

EntryWalk::EntryWalk(const Unit& unit, uint64_t offset)
    : table_(&unit.file->Abbreviations(unit)),
      reader_(unit.sections[Section::kInfo].substr(
                  0, std::min<uint64_t>(unit.end, unit.sections[Section::kInfo].size())),
              offset) {}

const Abbreviation* EntryWalk::Next() {
  if (entry_ != nullptr) {
    if (entry_->has_children) {
      ++depth_;
    } else if (depth_ == 0) {
      return nullptr;
    }
  }
  while (!reader_.empty()) {
    offset_ = reader_.offset();
    const uint64_t code = reader_.Uleb();
    if (code == 0) {
      if (depth_ <= 1) return nullptr;
      --depth_;
      continue;
    }
    entry_ = table_->Find(code);
    return entry_;
  }
  return nullptr;
}

}  // namespace xpu::dwarf
