#include "format/base/output_location.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr int kMostLinks = 40;  // as the kernel's

Error Failed(const std::string& path, std::string_view operation, int error_number) {
  const bool no_directory = error_number == ENOENT || error_number == ENOTDIR;
  return SystemError(Format("{}: {}", path, operation), error_number,
                     no_directory ? "its directory must exist: mkdir -p" : WriteHint(error_number));
}

// Its links are the kernel's own, and their text is not always a path: /proc/self/fd/1.
bool IsProc(int directory) {
  struct statfs info {};
  return ::fstatfs(directory, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

class Walk {
 public:
  Walk(const std::string& path, std::string operation)
      : path_(path), operation_(std::move(operation)), rest_(path) {}

  Result<OutputLocation> Run();

 private:
  Error Failed(int error_number) const { return xpu::Failed(path_, operation_, error_number); }
  Status GoTo(const char* start);
  std::string TakeName();
  Status EnterDirectory(const std::string& name);
  // True: the name is a link. `rest_` then goes on with where it leads, or at_ is already there.
  Result<bool> Follow(const std::string& name);
  // Nothing: the name was a link, or is not what it was a moment ago.
  Result<std::optional<OutputLocation>> OpenLast(const std::string& name);

  const std::string& path_;
  const std::string operation_;
  std::string rest_;  // of the path, from at_ on
  UniqueFd at_;
  int links_ = 0;
  bool is_behind_link_ = false;
};

Status Walk::GoTo(const char* start) {
  at_.reset(::open(start, O_PATH | O_DIRECTORY | O_CLOEXEC));
  return at_ ? Ok() : Status(Failed(errno));
}

std::string Walk::TakeName() {
  rest_.erase(0, std::min(rest_.find_first_not_of('/'), rest_.size()));
  std::string name = rest_.substr(0, rest_.find('/'));
  rest_.erase(0, name.size());
  return name;
}

Result<bool> Walk::Follow(const std::string& name) {
  if (++links_ > kMostLinks) return Failed(ELOOP);
  const UniqueFd link(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!link || ::fstat(link.get(), &info) != 0 || !S_ISLNK(info.st_mode)) return false;
  if (!IsTrustedOwner(info.st_uid)) {
    return Error{ErrorKind::kPermission,
                 Format("{}: {} is a symbolic link created by user {}", path_, name, info.st_uid),
                 "root follows only links created by root or by the user who called sudo: name the "
                 "target itself"};
  }
  if (IsProc(at_.get())) {
    at_.reset(::openat(at_.get(), name.c_str(), O_PATH | O_CLOEXEC));
    return at_ ? Result<bool>(true) : Result<bool>(Failed(errno));
  }
  std::array<char, PATH_MAX> text;
  const ssize_t bytes = ::readlinkat(link.get(), "", text.data(), text.size());
  if (bytes <= 0 || static_cast<size_t>(bytes) == text.size()) {
    return SystemError(Format("{}: readlink {}", path_, name), bytes < 0 ? errno : ENAMETOOLONG);
  }
  rest_.insert(0, text.data(), static_cast<size_t>(bytes));
  if (rest_.starts_with('/')) XPU_RETURN_IF_ERROR(GoTo("/"));
  return true;
}

Status Walk::EnterDirectory(const std::string& name) {
  // O_DIRECTORY: O_PATH alone does not mount what is mounted on demand.
  UniqueFd next(::openat(at_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const int error_number = errno;
  if (next) {
    at_ = std::move(next);
    return Ok();
  }
  XPU_ASSIGN_OR_RETURN(const bool is_link, Follow(name));
  return is_link ? Ok() : Status(Failed(error_number));
}

Result<std::optional<OutputLocation>> Walk::OpenLast(const std::string& name) {
  OutputLocation place;
  if (!name.empty()) {
    place.entry.reset(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!place.entry && errno != ENOENT) return Failed(errno);
  }
  if (place.entry && ::fstat(place.entry.get(), &place.info) != 0) return Failed(errno);
  if (place.entry && S_ISLNK(place.info.st_mode)) {
    const bool is_proc = IsProc(at_.get());
    XPU_ASSIGN_OR_RETURN(const bool is_link, Follow(name));
    if (!is_link) rest_ = name;
    is_behind_link_ |= is_link;
    if (!is_link || !is_proc) return std::optional<OutputLocation>();
    // It is there, without a name.
    place.entry = std::move(at_);
    if (::fstat(place.entry.get(), &place.info) != 0) return Failed(errno);
  }
  place.directory = std::move(at_);
  place.name = name;
  place.is_behind_link = is_behind_link_;
  return std::optional<OutputLocation>(std::move(place));
}

Result<OutputLocation> Walk::Run() {
  XPU_RETURN_IF_ERROR(GoTo(rest_.starts_with('/') ? "/" : "."));
  while (true) {
    const std::string name = TakeName();
    if (!rest_.empty()) {
      XPU_RETURN_IF_ERROR(EnterDirectory(name));
      continue;
    }
    XPU_ASSIGN_OR_RETURN(std::optional<OutputLocation> place, OpenLast(name));
    if (place) return *std::move(place);
  }
}

}  // namespace

Result<OutputLocation> FindOutputLocation(const std::string& path, std::string operation) {
  if (path.empty()) return Failed(path, operation, ENOENT);
  return Walk(path, std::move(operation)).Run();
}

bool MayBeMeant(const OutputLocation& place) {
  struct stat directory {};
  return !place.directory || IsTrustedOwner(place.info.st_uid) ||
         (::fstat(place.directory.get(), &directory) == 0 && directory.st_uid == place.info.st_uid);
}

UniqueFd OpenEntry(const OutputLocation& place, int flags) {
  const std::string path = Format("/proc/self/fd/{}", place.entry.get());
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY));
}

Result<UniqueFd> CreateOrReplace(const std::string& path) {
  constexpr char kOperation[] = "cannot write";
  constexpr int kMostTries = 3;
  for (int tries = 1;; ++tries) {
    XPU_ASSIGN_OR_RETURN(const OutputLocation place, FindOutputLocation(path, kOperation));
    if (place.name.empty() && !place.entry) return Failed(path, kOperation, EISDIR);
    if (place.entry && !MayBeMeant(place)) {
      return Error{
          ErrorKind::kPermission,
          Format("{}: user {} created it in another user's directory", path, place.info.st_uid),
          "remove it, or write to another directory"};
    }
    constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd fd = place.entry
                      ? OpenEntry(place, O_WRONLY | O_TRUNC)
                      : UniqueFd(::openat(place.directory.get(), place.name.c_str(), kNew, 0666));
    if (fd) return fd;
    // Created by another process just now.
    if (errno != EEXIST || tries == kMostTries) return Failed(path, kOperation, errno);
  }
}

std::optional<unsigned> NumberFromSudo(const char* variable) {
  const char* text = ::geteuid() == 0 ? std::getenv(variable) : nullptr;
  return text == nullptr ? std::nullopt : ParseNumber<unsigned>(text);
}

bool IsTrustedOwner(uid_t owner) {
  return ::geteuid() != 0 || owner == 0 || owner == NumberFromSudo("SUDO_UID");
}

}  // namespace xpu
