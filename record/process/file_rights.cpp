#include "record/process/file_rights.h"

#include <algorithm>
#include <filesystem>

#include <linux/capability.h>

#include "format/base/number.h"
#include "record/base/process_status.h"

namespace xpu {
FileRights ParseFileRights(std::string_view status) {
  constexpr size_t kOfFileSystem = 3;  // after real, effective and saved
  FileRights rights;
  const auto users = StatusWords(status, "Uid");
  const auto groups = StatusWords(status, "Gid");
  rights.overrides = users.size() <= kOfFileSystem || groups.size() <= kOfFileSystem;
  if (rights.overrides) return rights;
  rights.user = ParseNumber<uid_t>(users[kOfFileSystem]).value_or(0);
  rights.groups.push_back(ParseNumber<gid_t>(groups[kOfFileSystem]).value_or(0));
  for (const std::string_view group : StatusWords(status, "Groups")) {
    if (const auto number = ParseNumber<gid_t>(group)) rights.groups.push_back(*number);
  }
  constexpr uint64_t kOverriding = uint64_t{1} << CAP_DAC_OVERRIDE | uint64_t{1}
                                                                         << CAP_DAC_READ_SEARCH;
  rights.overrides = (StatusBits(status, "CapEff") & kOverriding) != 0;
  return rights;
}

// The first matching class decides, even if it allows less than the others.
bool Allows(const struct stat& file, const FileRights& rights, mode_t wanted) {
  if (rights.overrides) return true;
  constexpr int kOfOwner = 6, kOfGroup = 3;
  if (file.st_uid == rights.user) return (file.st_mode & wanted << kOfOwner) != 0;
  const auto& groups = rights.groups;
  if (std::find(groups.begin(), groups.end(), file.st_gid) != groups.end()) {
    return (file.st_mode & wanted << kOfGroup) != 0;
  }
  return (file.st_mode & wanted) != 0;
}

bool MayRead(const std::string& root, const std::string& path, const FileRights& rights) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    struct stat directory {};
    const std::string name = root + path.substr(0, slash + 1);
    if (::lstat(name.c_str(), &directory) == 0 && !Allows(directory, rights, S_IXOTH)) return false;
  }
  struct stat file {};
  return ::lstat((root + path).c_str(), &file) != 0 || Allows(file, rights, S_IROTH);
}

std::optional<std::string> ClosedDirectory(const std::string& file, const FileRights& rights) {
  std::filesystem::path directory;
  for (const std::filesystem::path& part : std::filesystem::path(file).parent_path()) {
    directory /= part;
    struct stat info {};
    if (::stat(directory.c_str(), &info) == 0 && !Allows(info, rights, S_IXOTH)) return directory;
  }
  return std::nullopt;
}

}  // namespace xpu
