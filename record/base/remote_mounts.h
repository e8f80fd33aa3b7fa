// Keeps the recorder from blocking on file systems whose server does not answer: FUSE and network
// mounts.
//
// A thread that waits for a FUSE server cannot be killed: its process remains until the server
// answers or ends. So a child makes the first access to a file of such a mount, and only the child
// blocks. A mount that answered is trusted for a moment; one that did not answer is not tried
// again. A mount that stops answering between the child's access and the recorder's still blocks
// the recorder. Reading every file through a child was rejected, because unwind tables and symbols
// are made from mapped files of gigabytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace xpu {

struct Mount {
  std::string mount_point;
  std::string device;  // "0:53", equal in all mount namespaces
  std::string type;    // "fuse.sshfs"
};
// Parses /proc/PID/mountinfo.
std::vector<Mount> ParseMounts(std::string_view text);
// The mount that holds an absolute path without links; nullptr if there is none.
const Mount* FindMount(const std::vector<Mount>& mounts, std::string_view path);

// True if such a file system is served from outside the kernel.
bool IsRemoteType(std::string_view type);

// Returns kBusy if the mount of the file or directory does not answer. In /proc, `path` may begin
// with /proc/PID/root or be /proc/PID/map_files/... or /proc/self/fd/N of a file that was opened by
// a checked path. Takes up to two seconds, once for each such mount.
Status CheckMountAnswers(const std::string& path);

}  // namespace xpu
