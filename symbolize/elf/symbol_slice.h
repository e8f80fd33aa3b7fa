// A pruned ELF image that stands for a file where the file is not: xpu-record makes it, a capture
// carries it, and every ELF tool reads it. libelf writes files, not the parts of one that a few
// addresses need: choosing them is what there is to do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/elf/elf_image.h"
#include "symbolize/elf/symbol_table.h"

namespace xpu {

struct SliceSection {
  std::string_view name;  // ".debug_info"
  std::string_view bytes;
};

// An ELF file of the same type and machine with the build-id and the loadable segments of `file`
// (so that file offsets and link addresses translate as in it; the segments have no content), and a
// .symtab of the symbols of `symbols` that cover one of `link_addresses`, each with the size up to
// which it counts. SymbolTable finds in the slice what it finds in `symbols` at each of these
// addresses, and nothing false at others. Equal input gives equal bytes. Of files that were made to
// have a large one, no more than 32 MiB of symbols and 256 segments.
std::string WriteSymbolSlice(const ElfImage& file, const SymbolTable& symbols,
                             std::span<const uint64_t> link_addresses,
                             std::span<const SliceSection> more = {});

}  // namespace xpu
