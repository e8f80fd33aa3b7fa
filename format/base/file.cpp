#include "format/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kReadBytes = 65536;

ErrorKind KindOfErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ESRCH:
      return ErrorKind::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorKind::kPermission;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorKind::kUnsupported;
    default:
      return ErrorKind::kSystem;
  }
}

// `expected_bytes`: spares growing, which for 60 MB takes 0.2 s. What does not begin with
// `beginning` is read no further.
Result<std::string> ReadAll(int fd, const std::string& path, size_t limit_bytes,
                            size_t expected_bytes = 0, std::string_view beginning = {}) {
  std::string content;
  if (expected_bytes != 0) content.resize(expected_bytes + kReadBytes);
  size_t used = 0;
  while (true) {
    if (content.size() - used < kReadBytes) {
      content.resize(content.size() + content.size() / 2 + kReadBytes);
    }
    ssize_t n = ::read(fd, content.data() + used, content.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(Format("{}: read", path), errno);
    if (n == 0) break;
    used += static_cast<size_t>(n);
    const size_t compared = std::min(used, beginning.size());
    if (beginning.substr(0, compared) != std::string_view(content).substr(0, compared)) break;
    if (used > limit_bytes) {
      return Error{ErrorKind::kInvalid, Format("{}: larger than {} bytes", path, limit_bytes), {}};
    }
  }
  content.resize(used);
  return content;
}

// Without holes where the file system does not report any.
std::vector<ByteRange> DataOf(int fd, size_t size) {
  std::vector<ByteRange> data;
  for (size_t at = 0; at < size;) {
    const off_t begin = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    const off_t end = begin < 0 ? -1 : ::lseek(fd, begin, SEEK_HOLE);
    if (end <= begin) return {{0, size}};
    at = std::min(static_cast<size_t>(end), size);
    data.push_back({static_cast<size_t>(begin), at});
  }
  return data;
}

}  // namespace

// A limit of this process has the same hint wherever it is reached; so has a directory instead of a
// file, unless something better is known.
Error SystemError(std::string what, int error_number, std::string hint) {
  if (error_number == EISDIR && hint.empty()) hint = "name a file, not a directory";
  if (error_number == EMFILE) hint = "allow more descriptors: ulimit -n 4096 (RLIMIT_NOFILE)";
  if (error_number == EFBIG) hint = "allow larger files: ulimit -f unlimited (RLIMIT_FSIZE)";
  return Error{KindOfErrno(error_number), Format("{}: {}", what, std::strerror(error_number)),
               std::move(hint)};
}

Result<std::string> ReadFile(const std::string& path, size_t limit_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return SystemError(Format("{}: open", path), errno);
  return ReadAll(fd.get(), path, limit_bytes);
}

std::string WriteHint(int error_number) {
  if (error_number == ENOSPC) return "the disk is full: free some space, or write to another disk";
  if (error_number == EDQUOT)
    return "the disk quota is exhausted: free some space, or write to another disk";
  if (error_number == EPIPE) return "the reader has exited";
  return {};
}

Status WriteAll(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(Format("{}: write", name), errno, WriteHint(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Ok();
}

bool ReadExactly(int fd, void* to, size_t size) {
  for (char* at = static_cast<char*>(to); size > 0;) {
    const ssize_t n = ::read(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

Result<FileBytes> FileBytes::Open(const std::string& path, std::string_view beginning) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return SystemError(Format("{}: open", path), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return SystemError(Format("{}: fstat", path), errno);
  if (S_ISDIR(info.st_mode)) return SystemError(Format("{}: open", path), EISDIR);

  FileBytes file;
  const auto size = static_cast<size_t>(info.st_size);
  if (S_ISREG(info.st_mode) && size > kCopyLimit) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (address == MAP_FAILED) return SystemError(Format("{}: mmap", path), errno);
    file.address_ = address;
    file.size_ = size;
    file.mapped_ = true;
    file.data_ = DataOf(fd.get(), size);
    return file;
  }
  const bool is_regular = S_ISREG(info.st_mode);
  XPU_ASSIGN_OR_RETURN(file.copy_, ReadAll(fd.get(), path, size_t{1} << 34, is_regular ? size : 0,
                                           is_regular ? std::string_view() : beginning));
  file.address_ = file.copy_.data();
  file.size_ = file.copy_.size();
  file.data_ = {{0, file.size_}};
  return file;
}

FileBytes::FileBytes(FileBytes&& other) noexcept { *this = std::move(other); }

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  if (this == &other) return *this;
  Release();
  mapped_ = std::exchange(other.mapped_, false);
  size_ = std::exchange(other.size_, 0);
  data_ = std::move(other.data_);
  copy_ = std::move(other.copy_);
  // A short copy lives inside the string object itself, so its address changes with the move.
  const void* address = std::exchange(other.address_, nullptr);
  address_ = mapped_ ? address : copy_.data();
  return *this;
}

FileBytes::~FileBytes() { Release(); }

void FileBytes::Release() {
  if (mapped_) ::munmap(const_cast<void*>(address_), size_);
  mapped_ = false;
  address_ = nullptr;
  size_ = 0;
}

}  // namespace xpu
