#include "record/output/output_directory.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/text.h"

namespace xpu {

FileId IdOf(const struct stat& info) { return {info.st_dev, info.st_ino}; }

OutputDirectory::OutputDirectory(UniqueFd directory, std::string prefix)
    : directory_(std::move(directory)), prefix_(std::move(prefix)) {}

UniqueFd OutputDirectory::TakeTurn() const {
  constexpr int kPatienceMs = 1000, kStepMs = 5;
  UniqueFd turn(::openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int waited_ms = 0; turn && waited_ms < kPatienceMs; waited_ms += kStepMs) {
    if (::flock(turn.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    ::usleep(kStepMs * 1000);
  }
  return turn;
}

std::vector<std::string> OutputDirectory::RegularFiles() const {
  std::vector<std::string> names;
  UniqueFd listed(::openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listed) return names;
  const Handle<DIR, ::closedir> entries(::fdopendir(listed.get()));
  if (!entries) return names;
  listed.release();
  while (const dirent* entry = ::readdir(entries.get())) {
    if (HasRegularFile(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

bool OutputDirectory::HasRegularFile(const std::string& name) const {
  struct stat info {};
  return ::fstatat(fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

Status OutputDirectory::CheckNotBeingWritten(const std::string& name) const {
  UniqueFd location(::openat(fd(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!location) return Ok();
  auto file = OpenRegularFile(std::move(location), PathOf(name));
  if (!file.ok() || ::flock(file->fd.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return Ok();
  }
  return Error{ErrorKind::kBusy, Format("{}: another xpu-record is writing it", PathOf(name)),
               "name another file with -o"};
}

Result<RenamedFile> OutputDirectory::Rename(const std::string& from, const std::string& to) const {
  if (::renameat(fd(), from.c_str(), fd(), to.c_str()) != 0) {
    return SystemError(Format("{}: rename to {}", PathOf(from), PathOf(to)), errno, kOtherFileHint);
  }
  struct stat info {};
  ::fstatat(fd(), to.c_str(), &info, AT_SYMLINK_NOFOLLOW);
  return RenamedFile{from, to, IdOf(info)};  // an empty id: the file has been removed already
}

void OutputDirectory::RemoveFile(const std::string& name) const {
  ::unlinkat(fd(), name.c_str(), 0);
}

bool OutputDirectory::IsStill(const std::string& name, const FileId& file) const {
  struct stat info {};
  return ::fstatat(fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && IdOf(info) == file;
}

void OutputDirectory::Remove(const NamedFile& file) const {
  if (IsStill(file.name, file.id)) RemoveFile(file.name);
}

void OutputDirectory::RenameBack(const RenamedFile& file) const {
  const char* from = file.now.c_str();
  const char* to = file.before.c_str();
  if (!IsStill(file.now, file.id) || ::renameat2(fd(), from, fd(), to, RENAME_NOREPLACE) == 0 ||
      errno == EEXIST) {
    return;
  }
  // File systems such as NFS lack this kind of rename.
  struct stat info {};
  if (::fstatat(fd(), to, &info, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) return;
  ::renameat(fd(), from, fd(), to);
}

}  // namespace xpu
