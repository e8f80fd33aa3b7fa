// The paths by which the recorder can find the file of a mapping.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// The name of the vdso's mapping.
inline constexpr char kVdso[] = "[vdso]";

// A mapping as reported by the kernel or by the process itself.
struct MappedCode {
  uint32_t pid = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string_view path;
};

// A mapped file.
struct MappedFile {
  // Possible paths, in the order in which they are tried: through /proc/PID/root, as the program
  // names it, ... "[vdso]" means the recorder's own, which is the same for every process of a
  // kernel.
  std::vector<std::string> paths;
  std::string build_id;  // raw bytes; empty: unknown. A file with another build-id is not used.
  uint64_t device = 0;   // PackedDevice; with inode, identifies a file without build-id
  uint64_t inode = 0;
};

// In the order in which they are to be tried. The last one is the path that the program sees, which
// remains valid after the process has ended. Empty if the mapping has no file.
std::vector<std::string> PathsOfMapping(const MappedCode& mapping);

}  // namespace xpu
