// The memory ring of one perf event, read by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

class PerfRing {
 public:
  // Takes ownership of the event and maps its ring of `data_bytes`, a power of two of complete
  // pages.
  static Result<PerfRing> Map(UniqueFd event, size_t data_bytes);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  int fd() const { return event_.get(); }

  // The number of records that did not fit, for an event that counts nothing and was opened with
  // PERF_FORMAT_LOST only. 0 if the kernel does not support it.
  uint64_t ReadLost() const;

  // Calls `visit` for each complete record; its bytes are valid only during the call. Returns the
  // number of records skipped because of an invalid header (the ring is emptied then).
  uint64_t Drain(const std::function<void(std::span<const std::byte>)>& visit);

  // Empties the ring. Returns false if it was empty.
  bool Discard();
  // For a ring that is never read, only discarded: until Discard no record fits, and none wakes the
  // reader.
  void Block();

 private:
  PerfRing() = default;

  UniqueFd event_;
  void* memory_ = nullptr;
  size_t data_bytes_ = 0;
  std::vector<std::byte> joined_;  // a record that wraps around the end
};

}  // namespace xpu
