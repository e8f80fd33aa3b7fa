#include "record/output/output_file.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/path.h"
#include "format/base/text.h"
#include "record/base/remote_mounts.h"

namespace xpu {
namespace {

// Only root can change a file's owner, and only sudo says who the caller is.
void GiveToCallerOfSudo(int fd) {
  const auto uid = NumberFromSudo("SUDO_UID");
  const auto gid = NumberFromSudo("SUDO_GID");
  if (!uid || !gid) return;
  // On failure the capture belongs to root. It is readable, so the recording goes on.
  if (::fchown(fd, *uid, *gid) != 0) return;
}

bool IsAskedToEnd() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 &&
         (::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1);
}

// A plain open would wait for a reader without end, and signals are blocked here.
Result<UniqueFd> OpenFifo(const OutputLocation& location, const std::string& path) {
  constexpr int kPatienceMs = 10'000, kStepMs = 20;
  for (int waited_ms = 0; waited_ms < kPatienceMs && !IsAskedToEnd(); waited_ms += kStepMs) {
    UniqueFd fd = OpenEntry(location, O_WRONLY | O_NONBLOCK);
    if (fd) {
      ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (errno != ENXIO) return SystemError(Format("{}: open", path), errno);
    ::usleep(kStepMs * 1000);
  }
  return Error{ErrorKind::kBusy, Format("{}: nobody is reading this FIFO", path),
               "start its reader first: cat FIFO > x.xpu &"};
}

// Opens a device or a pipe.
Result<UniqueFd> OpenExisting(const OutputLocation& location, const std::string& path) {
  if (S_ISFIFO(location.info.st_mode)) return OpenFifo(location, path);
  UniqueFd fd = OpenEntry(location, O_WRONLY);
  if (!fd) return SystemError(Format("{}: open", path), errno);
  return fd;
}

Error IsDirectory(const std::string& path) {
  return SystemError(
      Format("{}: open", path), EISDIR,
      Format("name a file in it: -o {}{}capture.xpu", path, path.ends_with('/') ? "" : "/"));
}

}  // namespace

// Follows a link only to something that is not a file (/dev/stdout, /proc/self/fd/3). A link to a
// file is refused, because it is unclear in which of the two directories the earlier capture must
// be kept.
Result<OutputName> FindOutput(const std::string& path) {
  XPU_RETURN_IF_ERROR(CheckMountAnswers(path));
  auto found = FindOutputLocation(path);
  if (!found.ok()) {
    Error error = std::move(found).error();
    if (error.hint.empty()) error.hint = kOtherFileHint;
    return error;
  }
  const mode_t mode = found->info.st_mode;
  if (S_ISFIFO(mode) && !MayBeMeant(*found)) {
    return Error{ErrorKind::kPermission,
                 Format("{}: user {} created this FIFO in another user's directory", path,
                        found->info.st_uid),
                 "root writes only to its own FIFOs and to those of the directory's owner"};
  }
  if (S_ISDIR(mode) || found->name.empty()) return IsDirectory(path);
  if (found->is_behind_link && (!found->entry || S_ISREG(mode))) {
    return Error{ErrorKind::kInvalid, Format("{}: is a symbolic link", path),
                 "name the target itself, or write to standard output with -o -"};
  }
  OutputName output;
  output.name = found->name;
  output.directory = std::make_shared<const OutputDirectory>(
      std::move(found->directory), path.substr(0, path.size() - FileNameOf(path).size()));
  output.location = *std::move(found);
  return output;
}

Result<OutputFile> OutputFile::OpenStandardOutput() {
  OutputFile file;
  file.name_ = "standard output";
  if (::isatty(STDOUT_FILENO) != 0) {
    return Error{ErrorKind::kUsage, "standard output: is a terminal",
                 "a capture is not text: redirect it, or name a file with -o"};
  }
  file.fd_.reset(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!file.fd_) return SystemError("standard output: dup", errno);
  return file;
}

Result<OutputFile> OutputFile::Open(const std::string& path) {
  if (path == "-") return OpenStandardOutput();
  OutputFile file;
  file.name_ = path;
  XPU_ASSIGN_OR_RETURN(const OutputName output, FindOutput(path));
  if (output.location.entry && !S_ISREG(output.location.info.st_mode)) {
    XPU_ASSIGN_OR_RETURN(file.fd_, OpenExisting(output.location, path));
    return file;
  }
  file.directory_ = output.directory;
  const UniqueFd turn = file.directory_->TakeTurn();
  XPU_RETURN_IF_ERROR(file.KeepOld(output.name));
  if (Status created = file.Create(output.name); !created.ok()) {
    file.Discard();
    return std::move(created).error();
  }
  return file;
}

Result<OutputFile> OutputFile::CreateNew(SharedDirectory directory, const std::string& name) {
  OutputFile file;
  file.name_ = directory->PathOf(name);
  file.directory_ = std::move(directory);
  XPU_RETURN_IF_ERROR(file.Create(name));
  return file;
}

// The entry is examined again, because only now no other recorder creates one.
Status OutputFile::KeepOld(const std::string& name) {
  if (!directory_->HasRegularFile(name)) return Ok();
  XPU_RETURN_IF_ERROR(directory_->CheckNotBeingWritten(name));
  XPU_ASSIGN_OR_RETURN(old_, directory_->Rename(name, name + kOldSuffix));
  return Ok();
}

Status OutputFile::Create(const std::string& name) {
  fd_.reset(::openat(directory_->fd(), name.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!fd_) return SystemError(Format("{}: create", name_), errno, kOtherFileHint);
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return SystemError(Format("{}: fstat", name_), errno);
  created_ = NamedFile{name, IdOf(info)};
  // The lock ends when the file is closed, however that happens. Without locks in the file system
  // nobody knows that the file is in use.
  (void)::flock(fd_.get(), LOCK_EX | LOCK_NB);
  // Mode 0600 whatever the umask is: a capture holds command lines and addresses.
  if (::fchmod(fd_.get(), 0600) != 0) {
    // A file system without modes; nothing can be done.
  }
  GiveToCallerOfSudo(fd_.get());
  return Ok();
}

void OutputFile::Discard() {
  fd_.reset();
  if (created_) directory_->Remove(*created_);
  if (old_) directory_->RenameBack(*old_);
  created_.reset();
  old_.reset();
}

Status CreateDirectoryFor(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) {
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory) GiveToCallerOfSudo(directory.get());
    return Ok();
  }
  if (errno == EEXIST) return Ok();
  return SystemError(Format("{}: cannot create the directory", path), errno);
}

}  // namespace xpu
