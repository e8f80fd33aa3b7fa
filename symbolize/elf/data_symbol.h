// Where a file keeps a variable of a given name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "symbolize/elf/elf_image.h"

namespace xpu {

// The link address of the symbol that the file defines under this name: of .dynsym, else of
// .symtab. Needs section headers. nullopt: there is none.
std::optional<uint64_t> FindSymbolAddress(const ElfImage& image, std::string_view name);

// Whether the file may define a symbol of this name for others. Reads a few bytes of .gnu.hash, in
// which a name that is not there seldom seems to be; false if there is no such table.
bool MayDefine(const ElfImage& image, std::string_view name);

}  // namespace xpu
