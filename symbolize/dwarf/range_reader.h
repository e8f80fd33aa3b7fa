// The addresses of code that entries give: low_pc and high_pc, .debug_ranges, .debug_rnglists.
#pragma once

#include <cstdint>
#include <vector>

#include "symbolize/dwarf/budget.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/dwarf/unit.h"
#include "symbolize/elf/elf_image.h"

namespace xpu::dwarf {

// Where code is loaded. The debugging entries of functions that the linker dropped stay in the file
// and begin at 0, 1 or the last address: they would hide others.
class LiveCode {
 public:
  // A file without executable segments (one unit of split DWARF, an object file) has all of it.
  explicit LiveCode(const std::vector<ElfSegment>& segments);
  bool Holds(uint64_t link_address) const;

 private:
  std::vector<AddressRange> ranges_;
};

class RangeReader {
 public:
  RangeReader(LiveCode live, const Sections& sections);

  const LiveCode& live() const { return live_; }
  // Appends the ranges that are not empty and whose begin is live.
  void Read(const Unit& unit, const CodeValues& code, std::vector<AddressRange>& ranges);

 private:
  void ReadOld(const Unit& unit, uint64_t offset, std::vector<AddressRange>& ranges);
  void ReadLists(const Unit& unit, uint64_t offset, std::vector<AddressRange>& ranges);
  void Append(uint64_t begin, uint64_t end, std::vector<AddressRange>& ranges);

  LiveCode live_;
  Budget budget_;
};

}  // namespace xpu::dwarf
