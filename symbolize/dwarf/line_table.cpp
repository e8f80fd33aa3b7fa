#include "symbolize/dwarf/line_table.h"

#include <algorithm>

#include <dwarf.h>

namespace xpu::dwarf {
namespace {

// What is instead of a file that nobody knows: libdw's name, and what LineWriter writes, or
// wrote until the directory of such files had a name.
bool IsUnknown(std::string_view name) {
  return name.empty() || name == "???" || name == kUnknownFile || name == "/??";
}

}  // namespace

LineTable::LineTable(Dwarf_Die unit, Dwarf_Die split, const Texts& texts, Budget& rows) {
  if (rows.spent()) return;
  if (dwarf_getsrclines(&unit, &rows_, &count_) != 0) {
    rows_ = nullptr;
    count_ = 0;
  }
  rows.Spend(count_ + 1);
  if (dwarf_getsrcfiles(&split, &files_, &file_count_) != 0 &&
      dwarf_getsrcfiles(&unit, &files_, &file_count_) != 0) {
    files_ = nullptr;
    file_count_ = 0;
  }
  rows.Spend(file_count_);
  Dwarf_Attribute directory;
  compiler_directory_ = texts.At(dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &directory)));
}

uint64_t LineTable::AddressOf(size_t row) const {
  Dwarf_Addr link_address = 0;
  dwarf_lineaddr(dwarf_onesrcline(rows_, row), &link_address);
  return link_address;
}

bool LineTable::IsEnd(size_t row) const {
  bool is_end = false;
  dwarf_lineendsequence(dwarf_onesrcline(rows_, row), &is_end);
  return is_end;
}

size_t LineTable::RowAt(uint64_t link_address) const {
  size_t first = 0;
  for (size_t left = count_; left > 0;) {
    const size_t half = left / 2;
    if (AddressOf(first + half) <= link_address) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return first == 0 ? count_ : first - 1;
}

SourceRow LineTable::RowOf(size_t row, uint64_t link_address) {
  if (IsEnd(row)) return {.link_address = link_address, .file = {}, .line = 0, .is_gap = true};
  Dwarf_Line* line = dwarf_onesrcline(rows_, row);
  int number = 0;
  dwarf_lineno(line, &number);
  return {.link_address = link_address,
          .file = PathOf(dwarf_linesrc(line, nullptr, nullptr)),
          .line = static_cast<uint32_t>(number)};
}

LineTable::Place LineTable::Find(uint64_t link_address) {
  const size_t row = RowAt(link_address);
  if (row == count_ || IsEnd(row)) return {};
  const SourceRow found = RowOf(row, link_address);
  return {.file = found.file, .line = found.line, .exists = true};
}

std::vector<SourceRow> LineTable::RowsOf(AddressRange range) {
  std::vector<SourceRow> found;
  const auto add = [&](const SourceRow& row) {
    // Of several rows of one address the last counts; rows that change only columns say nothing.
    if (!found.empty() && found.back().link_address == row.link_address) found.pop_back();
    if (!found.empty() && found.back().is_gap == row.is_gap && found.back().file == row.file &&
        found.back().line == row.line) {
      return;
    }
    found.push_back(row);
  };
  size_t row = RowAt(range.begin);
  if (row == count_) {
    add({.link_address = range.begin, .file = {}, .line = 0, .is_gap = true});
    row = 0;
  }
  for (; row < count_; ++row) {
    const uint64_t link_address = AddressOf(row);
    if (link_address >= range.end) break;
    add(RowOf(row, std::max(link_address, range.begin)));
  }
  return found;
}

std::string_view LineTable::File(uint32_t number) {
  if (number >= file_count_) return {};
  return PathOf(dwarf_filesrc(files_, number, nullptr, nullptr));
}

// libdw joins the directory and the name, and leaves the compiler's directory out where that of the
// file is relative; of a file in it, it may be in front already.
std::string_view LineTable::PathOf(const char* name) {
  if (name == nullptr) return {};
  const auto [found, is_new] = paths_.try_emplace(name);
  std::string& path = found->second;
  if (!is_new) return path;
  std::string_view text = name;
  // The directory of what LineWriter has none of.
  if (compiler_directory_.empty() && text.starts_with("./")) text.remove_prefix(2);
  if (IsUnknown(text)) return path;
  const bool has_directory =
      text.starts_with('/') || compiler_directory_.empty() ||
      (!compiler_directory_.starts_with('/') && text.starts_with(compiler_directory_ + '/'));
  if (!has_directory) {
    path = compiler_directory_;
    if (path.back() != '/') path += '/';
  }
  path += text;
  return path;
}

}  // namespace xpu::dwarf
