// Where in which file a probe goes that the user names by library and function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/options/user_probes.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

// What the loader takes for `name` when it starts `program`: a path; the program itself; a file in
// its run path, in LD_LIBRARY_PATH, of the loader's cache, in the standard directories. Without
// ".so" any version: "libc" is libc.so.6. A real path.
Result<std::string> FindLibrary(const std::string& name, const std::string& program,
                                const std::vector<std::string>& environment);

struct ProbePlace {
  std::string function;  // its symbol
  // Of each function of that name: static ones may share it.
  std::vector<uint64_t> file_offsets;
  // The kernel runs one of the instructions there in a single step, which makes a hit slow.
  bool is_slow = false;
};

// `function` is a symbol, or a demangled name or its start if only one function has it. `path`
// is for messages.
Result<ProbePlace> FindProbePlace(const ElfImage& image, const UserProbe& probe,
                                  const std::string& path);

}  // namespace xpu
