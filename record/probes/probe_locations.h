// Finds the file and the offset for a probe that the user names by library and function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/options/user_probes.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

// Finds the library that the loader uses for `name` when it starts `program`: a path, the program
// itself, or a file in its run path, in LD_LIBRARY_PATH, in the loader's cache or in the standard
// directories. Without ".so" any version matches: "libc" is libc.so.6. Returns a real path.
Result<std::string> FindLibrary(const std::string& name, const std::string& program,
                                const std::vector<std::string>& environment);

struct ProbeLocation {
  std::string function;  // its symbol
  // One for each function of that name: several static functions may share it.
  std::vector<uint64_t> file_offsets;
  // The kernel must single-step an instruction there, which makes hits slow.
  bool is_slow = false;
};

// `function` is a symbol, or a demangled name or the beginning of one that is unambiguous. `path`
// is for messages.
Result<ProbeLocation> FindProbeLocation(const ElfImage& image, const UserProbe& probe,
                                        const std::string& path);

}  // namespace xpu
