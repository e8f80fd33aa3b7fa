#include "symbolize/dwarf/line_table.h"

#include <algorithm>

#include "symbolize/dwarf/constants.h"
#include "symbolize/dwarf/line_program.h"

namespace xpu::dwarf {
namespace {

void Join(std::string& path, std::string_view part) {
  if (part.empty()) return;
  if (part.front() == '/') path.clear();
  if (!path.empty() && path.back() != '/') path += '/';
  path += part;
}

const LineRow* LastRowAt(const LineRow* first, const LineRow* end, uint64_t link_address) {
  return std::upper_bound(first, end, link_address, [](uint64_t address, const LineRow& row) {
    return address < row.link_address;
  });
}

}  // namespace

LineTable::LineTable(const Unit& unit, const LiveCode& live, Budget& budget)
    : compiler_folder_(unit.folder) {
  if (!unit.lines_at || budget.spent()) return;
  budget.Spend(LineProgram(*this, unit, live).Run(unit.sections[Section::kLine], *unit.lines_at));
  std::sort(sequences_.begin(), sequences_.end(),
            [](const Sequence& a, const Sequence& b) { return a.range.begin < b.range.begin; });
  rows_.shrink_to_fit();
}

const LineTable::Sequence* LineTable::SequenceAt(uint64_t link_address) const {
  auto after = std::upper_bound(
      sequences_.begin(), sequences_.end(), link_address,
      [](uint64_t address, const Sequence& sequence) { return address < sequence.range.begin; });
  if (after == sequences_.begin()) return nullptr;
  --after;
  return link_address < after->range.end ? &*after : nullptr;
}

const LineRow* LineTable::Find(uint64_t link_address) const {
  const Sequence* sequence = SequenceAt(link_address);
  if (sequence == nullptr) return nullptr;
  const LineRow* first = rows_.data() + sequence->first_row;
  const LineRow* after = LastRowAt(first, first + sequence->row_count, link_address);
  return after == first ? nullptr : after - 1;
}

std::vector<LineRow> LineTable::RowsOf(AddressRange range) const {
  std::vector<LineRow> found;
  for (uint64_t at = range.begin; at < range.end;) {
    const Sequence* sequence = SequenceAt(at);
    if (sequence == nullptr) {
      found.push_back({.link_address = at, .file = kGap, .line = 0});
      auto next = std::upper_bound(
          sequences_.begin(), sequences_.end(), at,
          [](uint64_t address, const Sequence& other) { return address < other.range.begin; });
      if (next == sequences_.end()) break;
      at = next->range.begin;
      continue;
    }
    const LineRow* first = rows_.data() + sequence->first_row;
    const LineRow* last = first + sequence->row_count - 1;  // the end
    const LineRow* row = LastRowAt(first, last, at);
    if (row != first) --row;
    for (; row != last && row->link_address < range.end; ++row) {
      found.push_back(*row);
      found.back().link_address = std::max(row->link_address, range.begin);
    }
    at = sequence->range.end;
  }
  return found;
}

std::string_view LineTable::File(uint64_t index) {
  if (!counts_from_zero_) --index;  // 0 wraps: no such file
  if (index >= files_.size()) return {};
  NamedFile& file = files_[index];
  if (file.name == kUnknownFile) return {};
  if (file.path.empty() && !file.name.empty()) file.path = PathOf(file);
  return file.path;
}

std::string LineTable::PathOf(const NamedFile& file) const {
  std::string path;
  const std::string_view folder =
      file.folder < folders_.size() ? folders_[file.folder] : std::string_view();
  Join(path, compiler_folder_);
  if (folder != compiler_folder_) Join(path, folder);
  Join(path, file.name);
  return path;
}

}  // namespace xpu::dwarf
