// What a process may read, by the modes of files and directories. Access lists are not looked at,
// nor what a capability is worth in another user namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace xpu {

struct FileRights {
  uid_t user = 0;  // as the file system sees it
  std::vector<gid_t> groups;
  bool overrides = false;  // by a capability
};

// What /proc/PID/status says. Where it says nothing everything is allowed.
FileRights ParseFileRights(std::string_view status);

// `wanted`: of the bits of others, S_IROTH or S_IXOTH.
bool Allows(const struct stat& file, const FileRights& rights, mode_t wanted);

// False if a directory on the way or the file refuses it; true also for what is not there. Links
// are not followed. `root`: "" or "/proc/PID/root".
bool MayRead(const std::string& root, const std::string& path, const FileRights& rights);

// The first directory on the way to `file`, an absolute path, that may not be entered; links are
// followed. nullopt: all may be.
std::optional<std::string> ClosedFolder(const std::string& file, const FileRights& rights);

}  // namespace xpu
