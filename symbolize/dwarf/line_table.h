// The source files and line rows of a unit, as libdw has them: all rows by address, each sequence
// with its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <elfutils/libdw.h>

#include "symbolize/dwarf/budget.h"
#include "symbolize/dwarf/dwarf_file.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {

class LineTable {
 public:
  struct Place {
    std::string_view file;
    uint32_t line = 0;  // 0: the compiler made it up
    bool exists = false;
  };

  LineTable() = default;
  // `unit`: with the rows; `split`: the one whose entries give files by number.
  LineTable(Dwarf_Die unit, Dwarf_Die split, const Texts& texts, Budget& rows);

  Place Find(uint64_t link_address);
  // The rows from that of `range.begin` up to the end, and a gap where there is none.
  std::vector<SourceRow> RowsOf(AddressRange range);
  // With the directory, absolute when the compiler's is known. Empty: no such file.
  std::string_view File(uint32_t number);

 private:
  // Of the last row at or before the address; count_: none.
  size_t RowAt(uint64_t link_address) const;
  uint64_t AddressOf(size_t row) const;
  bool IsEnd(size_t row) const;
  SourceRow RowOf(size_t row, uint64_t link_address);
  std::string_view PathOf(const char* name);

  Dwarf_Lines* rows_ = nullptr;
  size_t count_ = 0;
  Dwarf_Files* files_ = nullptr;
  size_t file_count_ = 0;
  bool counts_from_zero_ = false;  // since DWARF 5
  std::string compiler_directory_;
  std::unordered_map<const char*, std::string> paths_;
};

}  // namespace xpu::dwarf
