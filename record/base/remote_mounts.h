// Keeps the recorder away from file systems whose server does not answer: FUSE and network mounts.
//
// A thread that waits for a FUSE server can be ended by nothing, not even with its process: until
// the server answers or ends, the process stays. So the first access to a file of such a mount is
// made by a child, and who waits for that is not the recorder. A mount that answered is believed
// for a moment; one that did not is not tried again. A mount that stops answering between the
// child's access and the recorder's still blocks it: reading each file through a child was
// rejected, since tables and symbols are made of mapped files of gigabytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace xpu {

struct Mount {
  std::string place;
  std::string device;  // "0:53", the same in all mount namespaces
  std::string type;    // "fuse.sshfs"
};
// Of what /proc/PID/mountinfo says.
std::vector<Mount> ParseMounts(std::string_view text);
// The one that an absolute path without links is below; nullptr: none.
const Mount* FindMount(const std::vector<Mount>& mounts, std::string_view path);

// Whether a server outside the kernel answers for such a file system.
bool IsRemoteType(std::string_view type);

// kBusy: the mount of the file or directory does not answer. Of /proc, `path` may begin with
// /proc/PID/root, be /proc/PID/map_files/... or /proc/self/fd/N, of a file that was opened by a
// path that was checked. Takes up to two seconds, once for each such mount.
Status CheckMountAnswers(const std::string& path);

}  // namespace xpu
