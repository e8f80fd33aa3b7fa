// The addresses of code that entries give.
#pragma once

#include <cstdint>
#include <vector>

#include <elfutils/libdw.h>

#include "symbolize/dwarf/budget.h"
#include "symbolize/dwarf/range_map.h"
#include "symbolize/elf/segments.h"

namespace xpu::dwarf {

// Where code is loaded. The debugging entries of functions that the linker dropped stay in the file
// and begin at 0, 1 or the last address: they would hide others.
class LiveCode {
 public:
  // A file without executable segments (an object file) has all of it.
  explicit LiveCode(const std::vector<ElfSegment>& segments);
  bool Holds(uint64_t link_address) const;

 private:
  std::vector<AddressRange> ranges_;
};

// What an entry says of its code, attribute by attribute.
struct CodeValues {
  Dwarf_Attribute low_pc{};
  Dwarf_Attribute high_pc{};
  bool has_ranges = false;

  void Visit(const Dwarf_Attribute& attribute);
};

class CodeRanges {
 public:
  // `lists`: which entries share.
  CodeRanges(LiveCode live, Budget lists) : live_(std::move(live)), lists_(lists) {}

  const LiveCode& live() const { return live_; }
  // A split file has lists of its own.
  void Allow(Budget more) { lists_.Add(more); }
  // Appends the ranges of `entry` that are not empty and whose begin is live. `values`: the
  // entry's.
  void Read(Dwarf_Die& entry, const CodeValues& values, std::vector<AddressRange>& ranges);

 private:
  void Append(uint64_t begin, uint64_t end, std::vector<AddressRange>& ranges) const;

  LiveCode live_;
  Budget lists_;
};

}  // namespace xpu::dwarf
