// What the loader reads of an ELF file: which libraries it needs and where to look for them.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"

namespace xpu {

struct ElfNeeds {
  std::vector<std::string> libraries;  // DT_NEEDED, in order
  // Directories with ':' between them. With a DT_RUNPATH the loader ignores a DT_RPATH.
  std::string run_path;      // DT_RUNPATH
  std::string old_run_path;  // DT_RPATH
  std::string interpreter;   // PT_INTERP, of programs
};

// Reads the few pieces that tell it, which for a library of 100 MB takes 20 us. An error where it
// is no 64-bit ELF file of x86-64.
Result<ElfNeeds> ReadElfNeeds(const std::string& path);

}  // namespace xpu
