// The functions of a Go program, from the table that its runtime needs (.gopclntab): it is there in
// stripped programs too. elfutils does not read it: of a stripped Terraform, 102,459 functions of
// which have names here, libdw (dwfl_module_addrinfo) names none.
#pragma once

#include <vector>

#include "symbolize/elf/elf_image.h"

namespace xpu {

// One symbol for each function, up to the next one; names point into the file's bytes. Go 1.2 and
// later. Empty: it is no Go program, or one of a form that is not known. Layouts: the comments of
// Go's runtime/symtab.go and debug/gosym/pclntab.go.
std::vector<ElfSymbol> ReadGoFunctions(const ElfImage& file);

}  // namespace xpu
