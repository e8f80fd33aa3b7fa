// Debug information for tests, byte by byte, ELF files that hold it, and what is read of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolize/dwarf/debug_info.h"
#include "tests/unit/symbolize/cfi_builder.h"  // U8, Uleb, ...

namespace xpu::test {

// A length of 4 bytes before what it counts.
std::string Counted(const std::string& content);
// A text and its zero.
std::string Text(std::string_view text);
// An attribute and its form, for each.
using Layout = std::vector<std::pair<uint64_t, uint64_t>>;
// An entry of .debug_abbrev.
std::string Abbreviation(uint64_t code, uint64_t tag, bool has_children, const Layout& layout);
// A unit of .debug_info: `entries` after a header of 11 bytes, of DWARF 5 (DW_UT_compile) 12.
std::string UnitOf(int version, const std::string& entries);
// A line number program with `directories` and `files` (name and directory), then `operations`.
// Special opcodes: SpecialOpcode.
std::string LinesOf(int version, const std::vector<std::string>& directories,
                    const std::vector<std::pair<std::string, int>>& files,
                    const std::string& operations);
std::string SetAddress(uint64_t link_address);
std::string SpecialOpcode(int address_step, int line_step);
std::string EndSequence(uint64_t address_step);

// A file with an executable segment without content, and sections.
struct DebugElf {
  static constexpr uint64_t kTextBegin = 0x1000;
  static constexpr uint64_t kTextEnd = 0x3000;
  struct Section {
    std::string name;
    std::string bytes;
    uint64_t flags = 0;  // SHF_
  };
  std::vector<Section> sections;

  std::string& operator[](std::string_view name);
  std::string Build() const;
};

// A line for each frame: "function file:line", with a + where it is inlined.
std::string FramesAt(DebugInfo& info, uint64_t link_address);

}  // namespace xpu::test
