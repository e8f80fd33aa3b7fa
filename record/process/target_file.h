// Opening the files of recorded processes. Their paths, and what lies there, may be chosen to hurt:
// links that lead out of a container, pipes, devices, other files under the name of the mapped one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/open_file.h"
#include "format/base/result.h"

namespace xpu {

// `path` below /proc/PID/root is looked up as the process does it: links lead to nowhere outside
// its root. Only regular files (OpenRegularFile).
Result<RegularFile> OpenTargetFile(const std::string& path, int more_flags = 0);

// `path`, which begins with '/', as a process with that root sees it. Where the kernel does not
// know openat2(2), or a filter forbids it, or `has_openat2` says so: only paths without links,
// which is what the kernel reports of mappings.
Result<UniqueFd> OpenPlaceIn(const std::string& root, const std::string& path, int more_flags = 0,
                             bool has_openat2 = true);

// What the kernel says of a mapped file that has no build-id.
struct FileIdentity {
  uint64_t device = 0;  // PackedDevice
  uint64_t inode = 0;   // 0: not known
};
inline uint64_t PackedDevice(uint64_t major, uint64_t minor) { return major << 32 | minor; }
uint64_t PackedDevice(const struct stat& info);

// Whether `info`, of what was opened by `path`, may be that file. In another mount namespace the
// path leads to another file: one that was found by it alone, and not through the process, has to
// be the same inode. (Files with build-ids are identified by these.)
bool MayBeMapped(const struct stat& info, std::string_view path, const FileIdentity& identity);

}  // namespace xpu
