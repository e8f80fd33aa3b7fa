#include "symbolize/dwarf/device_lines.h"

#include <algorithm>

#include <gelf.h>

#include "symbolize/dwarf/budget.h"
#include "symbolize/elf/cubin.h"

namespace xpu::dwarf {
namespace {

bool IsOfDevice(Dwarf* dwarf) {
  GElf_Ehdr header;
  return gelf_getehdr(dwarf_getelf(dwarf), &header) != nullptr && header.e_machine == kCubinMachine;
}

}  // namespace

DeviceLines::DeviceLines(const DwarfFile& file) : file_(file) {
  if (!IsOfDevice(file.get())) return;
  texts_.Add(file.get());
  Budget budget(BytesOf(file.get(), ".debug_line"));
  Dwarf_Off offset = 0;
  Dwarf_CU* unit = nullptr;
  while (!budget.spent()) {
    Dwarf_Off next = 0;
    Dwarf_Files* files = nullptr;
    Dwarf_Lines* table = nullptr;
    size_t file_count = 0;
    size_t count = 0;
    // A table that is damaged does not end those after it.
    const int result =
        dwarf_next_lines(file.get(), offset, &next, &unit, &files, &file_count, &table, &count);
    if (result > 0 || next <= offset) break;
    offset = next;
    budget.Spend(count + file_count + 1);
    for (size_t i = 0; result == 0 && i < count; ++i) {
      Dwarf_Line* line = dwarf_onesrcline(table, i);
      Row row{.table = table, .line = line};
      bool is_end = false;
      if (line == nullptr || dwarf_lineaddr(line, &row.link_address) != 0) continue;
      dwarf_lineendsequence(line, &is_end);
      if (is_end) row.line = nullptr;
      rows_.push_back(row);
    }
  }
  // Where one function ends and the next one begins, the row of the latter counts.
  std::ranges::stable_sort(rows_, [](const Row& a, const Row& b) {
    if (a.link_address != b.link_address) return a.link_address < b.link_address;
    return a.line == nullptr && b.line != nullptr;
  });
}

std::vector<SourceFrame> DeviceLines::FramesAt(uint64_t link_address) const {
  std::vector<SourceFrame> frames;
  const auto after = std::ranges::upper_bound(rows_, link_address, {}, &Row::link_address);
  if (after == rows_.begin() || (after - 1)->line == nullptr) return frames;
  Dwarf_Lines* table = (after - 1)->table;
  // A damaged table may have circles.
  for (Dwarf_Line* line = (after - 1)->line; line != nullptr && frames.size() < kDeepestInline;
       line = dwarf_linecontext(table, line)) {
    SourceFrame& frame = frames.emplace_back();
    int number = 0;
    dwarf_lineno(line, &number);
    frame.line = static_cast<uint32_t>(std::max(number, 0));
    // libdw's own text, of the directory and the name.
    if (const char* file = dwarf_linesrc(line, nullptr, nullptr)) frame.file = file;
    frame.is_inlined = dwarf_linecontext(table, line) != nullptr;
    if (frame.is_inlined) frame.function = texts_.At(dwarf_linefunctionname(file_.get(), line));
  }
  frames.back().is_inlined = false;
  return frames;
}

}  // namespace xpu::dwarf
