// What a process may read, according to the modes of files and directories. Ignores access control
// lists and the limits of capabilities in other user namespaces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace xpu {

struct FileRights {
  uid_t user = 0;  // the file system user id
  std::vector<gid_t> groups;
  bool overrides = false;  // by a capability
};

// Parses /proc/PID/status. If fields are missing, everything is allowed.
FileRights ParseFileRights(std::string_view status);

// `wanted`: as bits for others, S_IROTH or S_IXOTH.
bool Allows(const struct stat& file, const FileRights& rights, mode_t wanted);

// False if the file or a directory of its path refuses access; true if it does not exist. Links are
// not followed. `root`: "" or "/proc/PID/root".
bool MayRead(const std::string& root, const std::string& path, const FileRights& rights);

// The first directory of the absolute path `file` that must not be entered, with links followed;
// nullopt if all may be entered.
std::optional<std::string> ClosedDirectory(const std::string& file, const FileRights& rights);

}  // namespace xpu
