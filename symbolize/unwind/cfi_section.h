// The entries of .eh_frame and .debug_frame: CIEs, what many functions have in common, and FDEs,
// one for each range of code. Layouts: DWARF 5 section 6.4.1, LSB 5 section 10.6. Unwind tables are
// made of them (symbolize/unwind/), and the functions of stripped files (function_ranges.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbolize/elf/elf_image.h"
#include "symbolize/unwind/cfi_cursor.h"

namespace xpu {

struct CfiSection {
  std::span<const std::byte> bytes;
  uint64_t link_address = 0;
  bool is_eh_frame = true;    // else .debug_frame
  bool ends_at_zero = false;  // its size is not known: an entry of length 0 is the last one
};

struct CallFrames {
  std::vector<CfiSection> sections;
  std::string inflated;  // the bytes of one that is compressed in the file
  std::string problem;   // why .debug_frame is not among them although there is one; else empty
};

// .eh_frame, by name or, where there are no section headers, through .eh_frame_hdr; then
// .debug_frame, which describes what was compiled without the other (the startup files still have
// it): that of `debug`, the separate debug file, if the file itself has none.
std::unique_ptr<CallFrames> FindCallFrames(const ElfImage& image, const ElfImage* debug = nullptr);

// Also where it is compressed.
bool HasDebugFrame(const ElfImage& image);

// .eh_frame alone.
std::optional<CfiSection> FindEhFrame(const ElfImage& image);

struct Cie {
  uint64_t offset = 0;  // in the section
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint64_t return_register = 0;
  uint8_t pointer_encoding = kEhAbsolute;
  bool is_signal_frame = false;
  bool has_augmentation_data = false;
  CfiCursor instructions;
};

struct Fde {
  uint64_t begin = 0;  // link addresses
  uint64_t end = 0;
  uint32_t cie = 0;  // index
  CfiCursor instructions;
};

struct CfiEntries {
  std::vector<Cie> cies;  // ascending by offset
  std::vector<Fde> fdes;  // in the section's order
  uint64_t invalid = 0;   // entries that could not be read
};

// All entries. Time and memory in proportion to the section.
CfiEntries ReadEntries(const CfiSection& section);

// The one at `offset`; its `cie` is 0, whatever it belongs to. nullopt: there is none.
std::optional<Fde> ReadFdeAt(const CfiSection& section, uint64_t offset);

}  // namespace xpu
