// Stores unwind tables on disk by build-id, so that a file is read once per machine and not once
// per recording.
//
// The name of a cache file is the build-id in hexadecimal. The file contains a header, which
// repeats the build-id and has a checksum, and the table. It is written under another name and
// renamed, so readers and writers in other processes see a complete file or none. A file that is
// damaged, of another version or of another build-id is removed, and the table is built again.
// Files are read, not mapped, because a truncated mapping would kill the recorder. Safe to use from
// any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "symbolize/unwind/unwind_builder.h"

namespace xpu {

class UnwindCache {
 public:
  static constexpr uint64_t kLimitBytes = uint64_t{512} << 20;

  // For root /var/cache/xpu/unwind, for others $XDG_CACHE_HOME/xpu/unwind or
  // $HOME/.cache/xpu/unwind; empty if neither is an absolute path.
  static std::string DefaultDirectory(uid_t user);

  // Creates the directory if it does not exist. Fails if it is a symbolic link, belongs to another
  // user or can be written by others; for root this applies to the directories above too.
  static Result<UnwindCache> Open(const std::string& directory, uint64_t limit_bytes = kLimitBytes);

  UnwindCache(UnwindCache&& other) noexcept;
  UnwindCache& operator=(UnwindCache&&) = delete;
  ~UnwindCache() = default;

  // The table for a raw build-id; nullopt if it is missing or was damaged.
  std::optional<UnwindTableBytes> Load(std::string_view build_id) const;
  // Returns whether it was stored. A full disk is not an error: the table is made again next time.
  bool Store(std::string_view build_id, std::span<const std::byte> table);

  // Removes the least recently used files until the limit is met, and files that killed writers
  // left. Touches only files named like those of the cache.
  void Sweep() const;
  // True if something was stored, so that the limit may be exceeded.
  bool grew() const { return grew_; }

 private:
  UnwindCache(UniqueFd directory, uint64_t limit_bytes)
      : directory_(std::move(directory)), limit_bytes_(limit_bytes) {}

  UniqueFd directory_;
  uint64_t limit_bytes_;
  std::atomic<bool> grew_ = false;
};

// A 64-bit checksum that every bit of `words` changes. Protects against damage, not against malice.
uint64_t UnwindChecksum(std::span<const uint64_t> words);

}  // namespace xpu
