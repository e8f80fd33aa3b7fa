// The file behind a mapping of a process, as the recorder may find it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// What the kernel or the process itself says of a mapping.
struct MappedCode {
  uint32_t pid = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string_view path;
};

// To be tried in this order: the last one is the path that the program sees, whatever becomes of
// the process. Empty: no file.
std::vector<std::string> PathsOfMapping(const MappedCode& mapping);

}  // namespace xpu
