// Where the functions of a file begin and end, as its unwind tables tell it: also of those that
// have no name in it.
#pragma once

#include <cstdint>
#include <optional>

#include "symbolize/elf/elf_image.h"
#include "symbolize/unwind/cfi_section.h"

namespace xpu {

class FunctionRanges {
 public:
  struct Range {
    uint64_t begin = 0;  // link addresses
    uint64_t end = 0;
  };

  // `image` must outlive this. Ranges are found through the table in .eh_frame_hdr: a file without
  // one has none.
  explicit FunctionRanges(const ElfImage& image);

  // In the time of a binary search. A compiler that splits a function into parts gives each its
  // range.
  std::optional<Range> Find(uint64_t link_address) const;

 private:
  // What the table says of entry `i`: where code begins, and where its FDE is.
  struct Entry {
    uint64_t begin = 0;
    uint64_t fde = 0;
  };
  Entry EntryAt(size_t i) const;

  std::optional<CfiSection> frames_;
  std::span<const std::byte> table_;
  uint64_t header_address_ = 0;
};

}  // namespace xpu
