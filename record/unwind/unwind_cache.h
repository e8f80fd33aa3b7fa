// Unwind tables on disk, by build-id, so that a file is read once per machine and not once per
// recording.
//
// A file of the cache is named by the build-id in hexadecimal and holds a header, which repeats the
// build-id and has a checksum, and the table. It is written under another name and renamed, so
// readers and writers in other processes see a whole file or none. A file that is damaged, of
// another version or of another build-id is removed, and the table is built again. Files are read,
// not mapped: one that is truncated must not kill the recorder. Safe to use from any thread.
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

  // Of root /var/cache/xpu/unwind. Of others $XDG_CACHE_HOME/xpu/unwind, else
  // $HOME/.cache/xpu/unwind; empty: neither is an absolute path.
  static std::string DefaultFolder(uid_t user);

  // Creates the directory if it does not exist. An error where it is a symbolic link, belongs to
  // another user or can be written by others; for root also where that is so on the way to it.
  static Result<UnwindCache> Open(const std::string& folder, uint64_t limit_bytes = kLimitBytes);

  UnwindCache(UnwindCache&& other) noexcept;
  UnwindCache& operator=(UnwindCache&&) = delete;
  ~UnwindCache() = default;

  // The table of a raw build-id; nullopt: not there, or it was damaged.
  std::optional<UnwindTableBytes> Load(std::string_view build_id) const;
  // Whether it was kept. A full disk is no error: the table is made again next time.
  bool Store(std::string_view build_id, std::span<const std::byte> table);

  // Removes what was not used for longest until the limit is kept, and files that writers who were
  // killed left over. Nothing that is not named as ours is touched.
  void Sweep() const;
  // Something was stored: the limit may be passed.
  bool grew() const { return grew_; }

 private:
  UnwindCache(UniqueFd folder, uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  UniqueFd folder_;
  uint64_t limit_bytes_;
  std::atomic<bool> grew_ = false;
};

// 64 bits of `words`, of which each changes the result. Against damage, not against malice.
uint64_t UnwindChecksum(std::span<const uint64_t> words);

}  // namespace xpu
