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
  // Takes the event over and maps its ring of `data_bytes`, a power of two of whole pages.
  static Result<PerfRing> Map(UniqueFd event, size_t data_bytes);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  int fd() const { return event_.get(); }

  // Records that found no room, of an event that counts nothing and was opened with
  // PERF_FORMAT_LOST alone. 0 where the kernel does not say.
  uint64_t ReadLost() const;

  // Calls `visit` with each whole record that is there; its bytes hold during the call. Returns the
  // number of records skipped because a header made no sense (then the ring is emptied).
  uint64_t Drain(const std::function<void(std::span<const std::byte>)>& visit);

  // Empties the ring. False: it was empty.
  bool Discard();
  // Of a ring that is never read, only discarded: nothing finds room in it, nor wakes, until then.
  void Block();

 private:
  PerfRing() = default;

  UniqueFd event_;
  void* memory_ = nullptr;
  size_t data_bytes_ = 0;
  std::vector<std::byte> joined_;  // a record that wraps around the end
};

}  // namespace xpu
