// Makes the unwind table of an ELF file from its call frame information.
//
// Our own, because no library makes tables: libdw and libunwind answer for one address at a time,
// by a walk that neither BPF programs nor an injected library can make. Asking libdw
// (dwarf_cfi_addrframe) for the row of each range took 4.4 to 6.8 times as long as this builder,
// which runs at the start of a recording for all files that a program maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "symbolize/elf/elf_image.h"
#include "symbolize/unwind/unwind_table.h"

namespace xpu {

// What was made of a file, for benches and messages.
struct UnwindStats {
  uint64_t entries = 0;  // FDEs
  uint64_t rows = 0;
  uint64_t unsupported = 0;  // rows whose rule has a form that tables do not hold
  uint64_t invalid = 0;      // entries left out because they are invalid
  std::string problem;       // why a part of the call frame information was not used; else empty
};

// The bytes of a table (unwind_table.h), 8-byte aligned.
class UnwindTableBytes {
 public:
  UnwindTableBytes() = default;
  explicit UnwindTableBytes(std::vector<uint64_t> words) : words_(std::move(words)) {}
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }
  UnwindTable view() const;  // of a table that was built: always opens

 private:
  std::vector<uint64_t> words_;
};

// From .eh_frame, and for code that it does not describe from .debug_frame, of `debug` (the
// separate debug file, may be null) if the file has none; from the table of Go's runtime
// (go_code.h). Works on files and on images in memory (the vdso). The file is untrusted: every read
// is checked, the work is bounded by the size of the section, entries that are invalid are left out
// and counted. kNotFound: the file has no call frame information.
Result<UnwindTableBytes> BuildUnwindTable(const ElfImage& image, UnwindStats* stats = nullptr,
                                          const ElfImage* debug = nullptr);

}  // namespace xpu
