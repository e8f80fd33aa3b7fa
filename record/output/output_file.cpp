#include "record/output/output_file.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

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

bool IsAskedToEnd() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 &&
         (::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1);
}

// Opening it plainly would wait for a reader for ever, deaf to signals, which are blocked.
Result<UniqueFd> OpenFifo(const std::string& path, int flags) {
  constexpr int kPatienceMs = 10'000, kStepMs = 20;
  for (int waited_ms = 0; waited_ms < kPatienceMs && !IsAskedToEnd(); waited_ms += kStepMs) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | flags));
    if (fd) {
      ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (errno != ENXIO) return SystemError(Format("{}: open", path), errno);
    ::usleep(kStepMs * 1000);
  }
  return Error{ErrorKind::kBusy, Format("{}: nobody reads this fifo", path),
               "start its reader first or at once: cat FIFO > x.xpu &"};
}

Result<UniqueFd> OpenExisting(const std::string& path, int flags) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode)) return OpenFifo(path, flags);
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

Error IsFolder(const std::string& path) {
  return SystemError(
      Format("{}: open", path), EISDIR,
      Format("name a file in it: -o {}{}capture.xpu", path, path.ends_with('/') ? "" : "/"));
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
  if (exists && S_ISDIR(info.st_mode)) return IsFolder(path);
  if (exists && !S_ISREG(info.st_mode)) {
    XPU_ASSIGN_OR_RETURN(file.fd_, OpenExisting(path, O_NOFOLLOW));
    return file;
  }
  if (exists) {
    XPU_RETURN_IF_ERROR(CheckNotBeingWritten(path));
    const std::string old = path + kOldSuffix;
    if (::rename(path.c_str(), old.c_str()) != 0) {
      return SystemError(Format("{}: rename to {}", path, old), errno, kOtherFileHint);
    }
    file.kept_old_ = true;
  }
  auto created = CreateNew(path);
  if (!created.ok()) {
    file.created_path_ = path;
    file.Discard();
    return std::move(created).error();
  }
  created->kept_old_ = file.kept_old_;
  return created;
}

Result<OutputFile> OutputFile::CreateNew(const std::string& path) {
  OutputFile file;
  file.name_ = path;
  file.fd_.reset(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file.fd_) {
    const bool no_folder = errno == ENOENT || errno == ENOTDIR;
    return SystemError(Format("{}: create", path), errno,
                       no_folder ? "its folder must be there: mkdir -p" : kOtherFileHint);
  }
  file.created_path_ = path;
  // Given up when the file is closed, however that comes about. Where there are no locks nobody is
  // told that it is in use.
  (void)::flock(file.fd_.get(), LOCK_EX | LOCK_NB);
  // 0600 also where the umask hides less or more: a capture holds command lines and addresses.
  if (::fchmod(file.fd_.get(), 0600) != 0) {
    // A filesystem without modes: nothing to do about it.
  }
  GiveToCallerOfSudo(file.fd_.get());
  return file;
}

Status CheckNotBeingWritten(const std::string& path) {
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd || ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return Ok();
  return Error{ErrorKind::kBusy, Format("{}: another xpu-record is writing it", path),
               "name another file with -o"};
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
