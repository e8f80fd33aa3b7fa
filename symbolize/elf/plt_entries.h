// The procedure linkage table: the stubs through which a file calls functions of other files. No
// symbol names them; their jumps lead to slots, and relocations say whose slot it is. No library
// does this: of the 477 entries of libLLVM 14 and the 224 of bash that get names here, libdw
// (dwfl_module_addrinfo) names none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "symbolize/elf/elf_image.h"

namespace xpu {

// One symbol for each entry of .plt, .plt.sec and .plt.got whose function is known, named
// "function@plt", without its version. Of a file without section headers what has the form of an
// entry. x86-64 only. `symbols`, of the same file, name functions that have several versions for
// different processors (IFUNC): an entry of such a one knows only an address. Names point into
// `names`, which must be empty, and must stay where it is.
std::vector<ElfSymbol> ReadPltEntries(const ElfImage& file, std::span<const ElfSymbol> symbols,
                                      std::string& names);

}  // namespace xpu
