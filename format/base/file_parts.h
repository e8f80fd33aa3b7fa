// Parts of a file, copied when they are asked for.
//
// Files of other users are not mapped: who cuts a file that is mapped ends this process (SIGBUS),
// and who writes to it makes two looks at one place differ, so that what was checked is not what is
// used. A copy of the few sections that are wanted takes less time than reading the whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "format/base/open_file.h"
#include "format/base/result.h"

namespace xpu {

// Safe to use from any thread.
class FileParts {
 public:
  // Of one file: more is not copied. The debug information of the largest programs fits.
  static constexpr uint64_t kMaxCopiedBytes = uint64_t{4} << 30;
  // Address space is taken for the whole file.
  static constexpr uint64_t kMaxFileBytes = uint64_t{64} << 30;

  // kInvalid: larger than `kMaxFileBytes`, or empty.
  static Result<std::unique_ptr<FileParts>> Of(RegularFile file, const std::string& name);
  FileParts(const FileParts&) = delete;
  FileParts& operator=(const FileParts&) = delete;
  ~FileParts();

  uint64_t size_bytes() const { return size_bytes_; }
  // What the file has of [offset, offset + size), for as long as this lives: each byte as it was
  // when it was first asked for; zeros where the file was cut meanwhile. Empty, too, when it would
  // make more than `kMaxCopiedBytes`.
  std::span<const std::byte> Part(uint64_t offset, uint64_t size) const;

 private:
  FileParts() = default;
  void Copy(uint64_t begin, uint64_t end) const;

  UniqueFd fd_;
  std::byte* memory_ = nullptr;
  uint64_t size_bytes_ = 0;
  uint64_t memory_bytes_ = 0;  // whole pages
  bool may_have_holes_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<bool> copied_;  // by piece
  mutable uint64_t copied_bytes_ = 0;
};

}  // namespace xpu
