// Call frame information for tests, byte by byte, and ELF files that hold it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "symbolize/unwind/unwind_builder.h"

namespace xpu::test {

// Fields of DWARF.
std::string U8(uint64_t value);
std::string U16(uint64_t value);
std::string U32(uint64_t value);
std::string U64(uint64_t value);
std::string Uleb(uint64_t value);
std::string Sleb(int64_t value);
// A length before what it counts.
std::string Block(const std::string& content);

// The entries of a section.
class CfiBuilder {
 public:
  // What a compiler writes: CFA = rsp + 8, the return address at CFA - 8.
  static std::string UsualCie();

  explicit CfiBuilder(bool is_eh_frame = true) : is_eh_frame_(is_eh_frame) {}

  // Addresses of .eh_frame count from their own place, 4 bytes each, unless the augmentation says
  // otherwise. Returns the offset of the CIE.
  size_t Cie(const std::string& instructions = UsualCie(),
             const std::string& augmentation = std::string("zR"),
             const std::string& augmentation_data = std::string(1, '\x1b'), int version = 1);
  // `head`: range and augmentation data. Of the last CIE.
  CfiBuilder& RawFde(const std::string& head, const std::string& instructions);
  // `begin` and `size` in the text of CfiElf.
  CfiBuilder& Fde(uint64_t begin, uint64_t size, const std::string& instructions = {});
  CfiBuilder& Raw(const std::string& bytes);
  // A length, a CIE's id or where the CIE is, then `content`; padded with DW_CFA_nop.
  CfiBuilder& Entry(bool is_cie, const std::string& content);

  // Link address of the next byte to write, of a field `offset` after it.
  uint64_t AddressOf(size_t offset) const;
  const std::string& bytes() const { return bytes_; }
  bool is_eh_frame() const { return is_eh_frame_; }
  // Lengths of 8 bytes from here on.
  CfiBuilder& Wide() {
    wide_ = true;
    return *this;
  }

 private:
  bool is_eh_frame_;
  bool wide_ = false;
  size_t last_cie_ = 0;
  std::string bytes_;
};

// A file with 16 KiB of code and a section of call frame information.
struct CfiElf {
  static constexpr uint64_t kTextOffset = 0x1000;
  static constexpr uint64_t kTextBytes = 0x4000;
  static constexpr uint64_t kText = 0x401000;  // link addresses
  static constexpr uint64_t kFrames = 0x500000;

  std::string name = ".eh_frame";
  std::string content;
  std::string debug_frame = {};  // a second section; empty: none
  bool with_sections = true;
  bool with_header = false;  // .eh_frame_hdr, as PT_GNU_EH_FRAME
  uint64_t section_flags = 0;
  uint64_t debug_frame_flags = 0;
  std::string code = {};  // at kText; the rest is 0xcc
  uint16_t machine = 62;  // EM_X86_64

  std::string Build() const;
};

// The table of a section as a file of its own. Checks that it is sound.
Result<UnwindTableBytes> BuildTable(const std::string& file, UnwindStats* stats = nullptr);
Result<UnwindTableBytes> BuildTable(const CfiBuilder& frames, UnwindStats* stats = nullptr);

}  // namespace xpu::test
