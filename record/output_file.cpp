#include "record/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr char kOldSuffix[] = ".old";

std::optional<unsigned> NumberFromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (errno != 0 || *end != '\0' || value >= 0xffffffffUL) return std::nullopt;
  return static_cast<unsigned>(value);
}

// Only root can give a file away, and only sudo says to whom.
void GiveToCallerOfSudo(int fd) {
  if (::geteuid() != 0) return;
  const auto uid = NumberFromEnvironment("SUDO_UID");
  const auto gid = NumberFromEnvironment("SUDO_GID");
  if (!uid || !gid) return;
  // Failure leaves a capture that belongs to root: readable, so not worth ending the recording.
  if (::fchown(fd, *uid, *gid) != 0) return;
}

Result<UniqueFd> OpenExisting(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | flags));
  if (!fd) return SystemError(Format("{}: open", path), errno);
  return fd;
}

// A link is followed only to what is not a file (/dev/stdout, /proc/self/fd/3): in a folder that
// others can write to, it could point at any file of ours.
Result<UniqueFd> OpenThroughLink(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return OpenExisting(path, 0);
  }
  return Error{ErrorKind::kInvalid, Format("{}: is a symbolic link", path),
               "name the file itself, or write to standard output with -o -"};
}

}  // namespace

Result<OutputFile> OutputFile::Open(const std::string& path) {
  OutputFile file;
  file.name_ = path;
  if (path == "-") {
    file.name_ = "standard output";
    if (::isatty(STDOUT_FILENO) != 0) {
      return Error{ErrorKind::kUsage, "standard output: is a terminal",
                   "a capture is not text: redirect it, or name a file with -o"};
    }
    file.fd_.reset(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!file.fd_) return SystemError("standard output: dup", errno);
    return file;
  }
  struct stat info {};
  const bool exists = ::lstat(path.c_str(), &info) == 0;
  if (exists && S_ISLNK(info.st_mode)) {
    XPU_ASSIGN_OR_RETURN(file.fd_, OpenThroughLink(path));
    return file;
  }
  if (exists && S_ISDIR(info.st_mode)) return SystemError(Format("{}: open", path), EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    XPU_ASSIGN_OR_RETURN(file.fd_, OpenExisting(path, O_NOFOLLOW));
    return file;
  }
  if (exists) {
    const std::string old = path + kOldSuffix;
    if (::rename(path.c_str(), old.c_str()) != 0) {
      return SystemError(Format("{}: rename to {}", path, old), errno);
    }
    file.kept_old_ = true;
  }
  file.fd_.reset(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file.fd_) {
    const int error_number = errno;
    file.created_path_ = path;
    file.Discard();
    return SystemError(Format("{}: create", path), error_number,
                       "name another file with -o, or record from another folder");
  }
  file.created_path_ = path;
  // 0600 also where the umask hides less or more: a capture holds command lines and addresses.
  if (::fchmod(file.fd_.get(), 0600) != 0) {
    // A filesystem without modes: nothing to do about it.
  }
  GiveToCallerOfSudo(file.fd_.get());
  return file;
}

void OutputFile::Discard() {
  fd_.reset();
  if (created_path_.empty()) return;
  ::unlink(created_path_.c_str());
  if (kept_old_) {
    const std::string old = created_path_ + kOldSuffix;
    std::rename(old.c_str(), created_path_.c_str());
  }
  created_path_.clear();
}

}  // namespace xpu
