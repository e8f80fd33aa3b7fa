#include "symbolize/dwarf/split_units.h"

#include <filesystem>
#include <vector>

namespace xpu::dwarf {
namespace {

// The numbers that .debug_cu_index has for sections; 0 is none of ours.
std::vector<std::pair<uint32_t, Section>> IndexedSections(uint16_t version) {
  if (version >= 5) {
    return {{1, Section::kInfo},
            {3, Section::kAbbrev},
            {4, Section::kLine},
            {6, Section::kStrOffsets},
            {8, Section::kRnglists}};
  }
  return {
      {1, Section::kInfo}, {3, Section::kAbbrev}, {4, Section::kLine}, {6, Section::kStrOffsets}};
}

}  // namespace

SplitFile::SplitFile(std::unique_ptr<MappedElf> file)
    : file_(std::move(file)), store_(file_->image(), SectionNames::kSplit) {
  ReadUnitIndex();
}

std::unique_ptr<SplitFile> SplitFile::Open(const std::string& path, Access access) {
  auto file = MappedElf::Open(path, access);
  if (!file.ok()) return nullptr;
  return std::unique_ptr<SplitFile>(new SplitFile(std::move(file).value()));
}

// A hash table of ids to rows, then for each row where it begins in each section, and how long.
void SplitFile::ReadUnitIndex() {
  ByteReader reader(store_.sections()[Section::kUnitIndex]);
  const uint16_t version = reader.U16();
  reader.Skip(2);
  const uint64_t columns = reader.U32();
  const uint64_t rows = reader.U32();
  const uint64_t slots = reader.U32();
  const std::string_view ids = reader.Take(slots * 8);
  const std::string_view indices = reader.Take(slots * 4);
  const std::string_view kinds = reader.Take(columns * 4);
  const std::string_view offsets = reader.Take(columns * rows * 4);
  const std::string_view sizes = reader.Take(columns * rows * 4);
  if (reader.failed() || columns > 16) return;
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const uint64_t row = ByteReader(indices, slot * 4).U32();
    if (row == 0 || row > rows) continue;
    Sections sections = store_.sections();
    for (uint64_t column = 0; column < columns; ++column) {
      const uint64_t at = ((row - 1) * columns + column) * 4;
      for (const auto& [kind, section] : IndexedSections(version)) {
        if (kind != ByteReader(kinds, column * 4).U32()) continue;
        const uint64_t offset = ByteReader(offsets, at).U32();
        const std::string_view whole = sections[section];
        sections[section] = offset > whole.size()
                                ? std::string_view()
                                : whole.substr(offset, ByteReader(sizes, at).U32());
      }
    }
    indexed_.emplace(ByteReader(ids, slot * 8).U64(), sections);
  }
}

DebugFile* SplitFile::Find(uint64_t split_id) {
  const auto [found, is_new] = units_.try_emplace(split_id);
  if (!is_new) return found->second.get();
  Sections sections = store_.sections();
  if (!indexed_.empty()) {
    const auto indexed = indexed_.find(split_id);
    if (indexed == indexed_.end()) return nullptr;
    sections = indexed->second;
  }
  found->second = std::make_unique<DebugFile>(sections);
  return found->second.get();
}

const Unit* SplitUnits::Find(const Unit& skeleton) {
  if (path_.empty()) return nullptr;
  DebugFile* file = FindFile(skeleton);
  if (file == nullptr) return nullptr;
  for (Unit& unit : file->mutable_units()) {
    if (unit.is_type() || unit.split_id != skeleton.split_id) continue;
    unit.sections[Section::kAddr] = skeleton.sections[Section::kAddr];
    unit.addresses_base = skeleton.addresses_base;
    unit.low_pc = skeleton.low_pc;
    if (unit.format.version < 5) {
      unit.sections[Section::kRanges] = skeleton.sections[Section::kRanges];
      unit.ranges_base = skeleton.split_ranges_base;
    }
    return &unit;
  }
  return nullptr;
}

SplitFile* SplitUnits::Open(const std::string& path) {
  const auto [found, is_new] = files_.try_emplace(path);
  if (is_new) found->second = SplitFile::Open(path, access_);
  return found->second.get();
}

DebugFile* SplitUnits::FindFile(const Unit& skeleton) {
  namespace fs = std::filesystem;
  if (SplitFile* package = Open(path_ + ".dwp")) {
    if (DebugFile* file = package->Find(skeleton.split_id)) return file;
  }
  const fs::path name(skeleton.split_name);
  for (const fs::path& path : {fs::path(skeleton.folder) / name, fs::path(folder_) / name,
                               fs::path(folder_) / name.filename()}) {
    SplitFile* split = Open(path.string());
    if (split != nullptr) return split->Find(skeleton.split_id);
  }
  return nullptr;
}

}  // namespace xpu::dwarf
