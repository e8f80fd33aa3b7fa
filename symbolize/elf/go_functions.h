// The functions of a Go program, from the table that its runtime needs (.gopclntab): it is there in
// stripped programs too. elfutils does not read it: of a stripped Terraform, 102,459 functions of
// which have names here, libdw (dwfl_module_addrinfo) names none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbolize/elf/elf_image.h"

namespace xpu {

// One symbol for each function, up to the next one; names point into the file's bytes. Go 1.2 and
// later. Empty: it is no Go program, or one of a form that is not known. Layouts: the comments of
// Go's runtime/symtab.go and debug/gosym/pclntab.go.
std::vector<ElfSymbol> ReadGoFunctions(const ElfImage& file);

// How a function of Go uses its stack.
struct GoFrame {
  uint64_t begin = 0;  // link addresses
  uint64_t end = 0;
  bool is_outermost = false;     // nothing called it
  bool switches_stacks = false;  // it writes the stack pointer in ways that `depths` does not say
  // The depth of the stack above its return address: pairs of the change of the depth (zigzag) and
  // how many bytes of code it holds for, both as LEB128, from a depth of -1 on.
  std::span<const std::byte> depths;
};

// Ascending. Go 1.18 and later.
std::vector<GoFrame> ReadGoFrames(const ElfImage& file);

}  // namespace xpu
