// File input and output with Results. Sizes are bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// Reads a whole file (also of /proc, where sizes are unknown). Fails when it is larger than
// `limit_bytes`.
Result<std::string> ReadFile(const std::string& path, size_t limit_bytes = size_t{1} << 30);

// What to do when a write has failed so; may be empty.
std::string WriteHint(int error_number);

// Writes everything, continuing after short writes and EINTR. `name` is what an error calls it.
Status WriteAll(int fd, std::string_view bytes, const std::string& name);
// Reads `size` bytes, also from a socket; false: an error, or the end came first.
bool ReadExactly(int fd, void* to, size_t size);

// Of what the kernel calls a mapping: true for "/usr/lib/libfoo.so", false for "[vdso]", "//anon",
// "anon_inode:[perf_event]".
inline bool IsFilePath(std::string_view path) {
  return path.starts_with('/') && !path.starts_with("//");
}

// True for memory that looks like a file, such as "/memfd:doublemapper (deleted)" and "/dev/zero
// (deleted)", and for files without a name: just-in-time compilers map their code from such.
inline bool MayBeGeneratedCode(std::string_view path) {
  return path.ends_with(" (deleted)") || path.starts_with("/dev/");
}

// The bytes [begin, end) of a file.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

// A read-only memory mapping of a regular file, or a copy in memory of what is not mappable (a
// pipe). A file truncated by another process while it is mapped would raise SIGBUS, so captures up
// to `kCopyLimit` are read instead of mapped.
class FileBytes {
 public:
  static constexpr size_t kCopyLimit = size_t{64} << 20;

  // `beginning`: of a stream that begins otherwise no more than its first bytes are read: it may
  // have no end.
  static Result<FileBytes> Open(const std::string& path, std::string_view beginning = {});

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(address_), size_};
  }
  // The parts of a mapping that the disk has, ascending. Between them are holes: zeros that take no
  // room there, but time and memory when they are read.
  std::span<const ByteRange> data() const { return data_; }

 private:
  FileBytes() = default;
  void Release();

  const void* address_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  std::vector<ByteRange> data_;
  std::string copy_;  // owns the bytes when !mapped_
};

}  // namespace xpu
