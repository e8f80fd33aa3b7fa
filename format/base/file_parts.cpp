#include "format/base/file_parts.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{64} << 10;

uint64_t PieceOf(uint64_t offset) { return offset / kPieceBytes; }

}  // namespace

Result<std::unique_ptr<FileParts>> FileParts::Of(RegularFile file, const std::string& name) {
  const auto size = static_cast<uint64_t>(file.info.st_size);
  if (size == 0 || size > kMaxFileBytes) {
    return Error{ErrorKind::kInvalid,
                 size == 0 ? Format("{}: empty, or not a regular file", name)
                           : Format("{}: larger than {} GiB", name, kMaxFileBytes >> 30),
                 {}};
  }
  std::unique_ptr<FileParts> parts(new FileParts);
  parts->memory_bytes_ = (size + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
  void* memory = ::mmap(nullptr, parts->memory_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return SystemError(Format("{}: mmap", name), errno);
  parts->memory_ = static_cast<std::byte*>(memory);
  parts->size_bytes_ = size;
  parts->may_have_holes_ = static_cast<uint64_t>(file.info.st_blocks) * 512 < size;
  parts->copied_.resize(PieceOf(size - 1) + 1);
  parts->fd_ = std::move(file.fd);
  return parts;
}

FileParts::~FileParts() {
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
}

std::span<const std::byte> FileParts::Part(uint64_t offset, uint64_t size) const {
  if (offset >= size_bytes_ || size == 0) return {};
  size = std::min(size, size_bytes_ - offset);
  const std::lock_guard lock(mutex_);
  const uint64_t first = PieceOf(offset), last = PieceOf(offset + size - 1);
  uint64_t missing = 0;
  for (uint64_t piece = first; piece <= last; ++piece) missing += copied_[piece] ? 0 : kPieceBytes;
  if (missing > kMaxCopiedBytes - copied_bytes_) return {};
  copied_bytes_ += missing;
  for (uint64_t piece = first; piece <= last;) {
    uint64_t end = piece;
    while (end <= last && !copied_[end]) copied_[end++] = true;
    if (end > piece) Copy(piece * kPieceBytes, std::min(end * kPieceBytes, size_bytes_));
    piece = end + 1;
  }
  return {memory_ + offset, size};
}

// Holes stay memory that was never touched: a file of nothing but holes costs none.
void FileParts::Copy(uint64_t begin, uint64_t end) const {
  while (begin < end) {
    uint64_t until = end;
    if (may_have_holes_) {
      const off_t data = ::lseek(fd_.get(), static_cast<off_t>(begin), SEEK_DATA);
      if (data < 0 && errno == ENXIO) return;
      if (data >= 0) {
        begin = static_cast<uint64_t>(data);
        const off_t hole = ::lseek(fd_.get(), data, SEEK_HOLE);
        if (hole > data) until = std::min(until, static_cast<uint64_t>(hole));
      }
      if (begin >= end) return;
    }
    const ssize_t n = ::pread(fd_.get(), memory_ + begin, until - begin, static_cast<off_t>(begin));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // cut, or not readable: zeros
    begin += static_cast<uint64_t>(n);
  }
}

}  // namespace xpu
