// The source lines of the code of a unit (.debug_line).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/dwarf/budget.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/dwarf/range_reader.h"
#include "symbolize/dwarf/unit.h"

namespace xpu::dwarf {

// Of the number of a file or a line: larger ones are damage.
inline uint32_t AtMost32Bits(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
}

// From `link_address` to the next row.
struct LineRow {
  uint64_t link_address = 0;
  uint32_t file = 0;  // of LineTable::File
  uint32_t line = 0;  // 0: the compiler made it up
};

class LineTable {
 public:
  static constexpr uint32_t kGap = UINT32_MAX;

  LineTable() = default;
  // `unit`: one that has lines; its texts must outlive this.
  LineTable(const Unit& unit, const LiveCode& live, Budget& budget);

  // nullptr: none.
  const LineRow* Find(uint64_t link_address) const;
  // The rows from that of `range.begin` up to the end, and one with the file kGap where there is
  // none.
  std::vector<LineRow> RowsOf(AddressRange range) const;

  // With the folder, absolute when the compiler's folder is known. Empty: no such file.
  std::string_view File(uint64_t index);

 private:
  friend class LineProgram;
  struct NamedFile {
    std::string_view name;
    uint64_t folder = 0;
    std::string path;  // made when it is asked for
  };
  // Rows of ascending addresses; the last one is the end.
  struct Sequence {
    AddressRange range;
    size_t first_row = 0;
    size_t row_count = 0;
  };

  const Sequence* SequenceAt(uint64_t link_address) const;
  std::string PathOf(const NamedFile& file) const;

  std::vector<Sequence> sequences_;  // ascending, without overlaps
  std::vector<LineRow> rows_;
  std::vector<NamedFile> files_;
  std::vector<std::string_view> folders_;
  std::string_view compiler_folder_;
  bool counts_from_zero_ = false;  // since DWARF 5
};

}  // namespace xpu::dwarf
