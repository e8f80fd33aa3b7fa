#include "record/file_rights.h"

#include <algorithm>
#include <cstdlib>

#include <linux/capability.h>

#include "format/base/number.h"
#include "record/probe_libraries.h"

namespace xpu {
namespace {

std::string_view FieldOf(std::string_view status, std::string_view name) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = status.substr(at + name.size());
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

FileRights ParseFileRights(std::string_view status) {
  constexpr size_t kOfFileSystem = 3;  // behind real, effective, saved
  FileRights rights;
  const auto users = Split(FieldOf(status, "\nUid:"), " \t");
  const auto groups = Split(FieldOf(status, "\nGid:"), " \t");
  rights.overrides = users.size() <= kOfFileSystem || groups.size() <= kOfFileSystem;
  if (rights.overrides) return rights;
  rights.user = ParseNumber<uid_t>(users[kOfFileSystem]).value_or(0);
  rights.groups.push_back(ParseNumber<gid_t>(groups[kOfFileSystem]).value_or(0));
  for (const std::string_view group : Split(FieldOf(status, "\nGroups:"), " \t")) {
    if (const auto number = ParseNumber<gid_t>(group)) rights.groups.push_back(*number);
  }
  const std::string capabilities(FieldOf(status, "\nCapEff:"));
  constexpr uint64_t kOverriding = uint64_t{1} << CAP_DAC_OVERRIDE | uint64_t{1}
                                                                         << CAP_DAC_READ_SEARCH;
  rights.overrides = (std::strtoull(capabilities.c_str(), nullptr, 16) & kOverriding) != 0;
  return rights;
}

// The first that fits decides, also where it allows less.
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
    struct stat folder {};
    const std::string name = root + path.substr(0, slash + 1);
    if (::lstat(name.c_str(), &folder) == 0 && !Allows(folder, rights, S_IXOTH)) return false;
  }
  struct stat file {};
  return ::lstat((root + path).c_str(), &file) != 0 || Allows(file, rights, S_IROTH);
}

}  // namespace xpu
