#include "record/process/target_file.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/remote_mounts.h"

namespace xpu {
namespace {

constexpr std::string_view kProc = "/proc/";
constexpr std::string_view kRoot = "/root";

UniqueFd OpenAt2(int root, const char* path, int more_flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(O_PATH | O_CLOEXEC | more_flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof(how))));
}

// Opens one directory after the other and stops at a link.
Result<UniqueFd> OpenWithoutLinks(UniqueFd directory, std::string_view path,
                                  const std::string& name) {
  while (true) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    if (path.empty()) return directory;
    const std::string part(path.substr(0, path.find('/')));
    path.remove_prefix(part.size());
    UniqueFd next(::openat(directory.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return SystemError(Format("{}: open", name), errno);
    struct stat info {};
    if (part == ".." || ::fstat(next.get(), &info) != 0 || S_ISLNK(info.st_mode)) {
      return SystemError(Format("{}: open", name), ELOOP);
    }
    directory = std::move(next);
  }
}

// The length of a leading "/proc/PID/root": the rest is the path inside that root.
std::optional<size_t> RootLength(std::string_view path) {
  if (!path.starts_with(kProc)) return std::nullopt;
  const size_t end = path.find_first_not_of("0123456789", kProc.size());
  if (end == kProc.size() || end == std::string_view::npos) return std::nullopt;
  if (!path.substr(end).starts_with(kRoot) || !path.substr(end + kRoot.size()).starts_with('/')) {
    return std::nullopt;
  }
  return end + kRoot.size();
}

}  // namespace

Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path, int more_flags,
                            bool has_openat2) {
  const std::string name = root + path;
  UniqueFd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return SystemError(Format("{}: open", name), errno);
  if (has_openat2) {
    UniqueFd handle = OpenAt2(directory.get(), path.c_str(), more_flags);
    if (handle) return handle;
    // Seccomp filters of containers return one of these for system calls that they do not know.
    if (errno != ENOSYS && errno != EPERM) return SystemError(Format("{}: open", name), errno);
  }
  return OpenWithoutLinks(std::move(directory), path, name);
}

Result<RegularFile> OpenTargetFile(const std::string& path, int more_flags) {
  XPU_RETURN_IF_ERROR(CheckMountAnswers(path));
  const auto length = RootLength(path);
  if (!length) return OpenRegularFile(path, more_flags);
  XPU_ASSIGN_OR_RETURN(UniqueFd handle,
                       OpenInRoot(path.substr(0, *length), path.substr(*length), more_flags));
  return OpenRegularFile(std::move(handle), path);
}

uint64_t PackedDevice(const struct stat& info) {
  return PackedDevice(major(info.st_dev), minor(info.st_dev));
}

bool MayBeMapped(const struct stat& info, std::string_view path, const FileIdentity& identity) {
  if (identity.inode == 0 || path.starts_with(kProc)) return true;
  if (info.st_ino != identity.inode) return false;
  // Btrfs and overlayfs give stat(2) another device than they give the kernel's records, both
  // without a major number.
  const bool is_anonymous = major(info.st_dev) == 0 && identity.device >> 32 == 0;
  return is_anonymous || PackedDevice(info) == identity.device;
}

}  // namespace xpu
