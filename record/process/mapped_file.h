// The file of a mapping in a process, as the recorder may find it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// The name of the vdso's mapping.
inline constexpr char kVdso[] = "[vdso]";

// What the kernel or the process itself says of a mapping.
struct MappedCode {
  uint32_t pid = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string_view path;
};

// A mapped file.
struct MappedFile {
  // Where the recorder may find it, tried in this order: through /proc/PID/root, as the program
  // names it, ... "[vdso]" is the recorder's own, which every process of a kernel shares.
  std::vector<std::string> paths;
  std::string build_id;  // raw bytes, empty: not known. A file with another one is not used.
  uint64_t device = 0;   // PackedDevice; with inode: the identity of a file without build-id
  uint64_t inode = 0;
};

// To be tried in this order: the last one is the path that the program sees, whatever becomes of
// the process. Empty: no file.
std::vector<std::string> PathsOfMapping(const MappedCode& mapping);

}  // namespace xpu
