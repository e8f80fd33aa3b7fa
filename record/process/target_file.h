// Opens files of recorded processes. Their paths and contents are untrusted: links that lead out of
// a container, pipes, devices, other files under the name of the mapped one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/open_file.h"
#include "format/base/result.h"

namespace xpu {

// A `path` below /proc/PID/root is resolved as the process resolves it: links cannot lead out of
// its root. Opens regular files only (OpenRegularFile).
Result<RegularFile> OpenTargetFile(const std::string& path, int more_flags = 0);

// Opens `path`, which begins with '/', as a process with that root sees it. If openat2(2) is
// missing or forbidden, or `has_openat2` is false, only paths without links are opened; the kernel
// reports mappings by such paths.
Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path, int more_flags = 0,
                            bool has_openat2 = true);

// What the kernel reports about a mapped file without a build-id.
struct FileIdentity {
  uint64_t device = 0;  // PackedDevice
  uint64_t inode = 0;   // 0: unknown
};
inline uint64_t PackedDevice(uint64_t major, uint64_t minor) { return major << 32 | minor; }
uint64_t PackedDevice(const struct stat& info);

// True if `info`, of a file opened by `path`, may be that file. In another mount namespace the path
// leads to another file, so a file that was found by its path alone, not through the process, must
// have the same inode. Files with build-ids are identified by these instead.
bool MayBeMapped(const struct stat& info, std::string_view path, const FileIdentity& identity);

}  // namespace xpu
