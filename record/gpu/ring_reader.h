// Reads the ring that one program's injected library writes (cupti_inject/wire.h).
//
// The memory is shared with the program, so nothing in it is trusted and nothing is read twice:
// sizes and positions are checked against the reader's own numbers, and messages are copied out
// before they are examined. A ring that violates the protocol is not read again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cupti_inject/wire.h"
#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

class RingReader {
 public:
  // Creates and maps the memory. `capacity_bytes`: a power of two of complete pages. `settings`:
  // bits of wire::kSetting..., for the library.
  static Result<RingReader> Create(uint64_t capacity_bytes = wire::kDefaultCapacityBytes,
                                   uint32_t settings = 0);

  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&&) = delete;
  ~RingReader();

  // Handed to the library, which maps it as the reader does.
  int memfd() const { return memfd_.get(); }
  uint64_t capacity_bytes() const { return capacity_; }
  wire::RingHeader& header() const { return *header_; }

  // A message with its MessageHeader, 8-byte aligned, valid during the call.
  using Visit = std::function<void(wire::MessageKind kind, std::span<const std::byte> message)>;

  // Visits the messages that are ready, in order, and frees their space. Increments the heartbeat.
  // Stops at the first message that is not finished.
  void Drain(const Visit& visit);

  // Both are called after Drain when no producer is left.
  // True if space was reserved for a message that never became ready: its thread died.
  bool HasTornMessage() const;
  // Steps over that message, so that what other threads sent after it can be read. False if there
  // is none before `end`, or its thread died before it wrote the size.
  bool SkipTornMessage(uint64_t end);
  // Where what is reserved ends now. A child of the program has the same memory, and may go on.
  uint64_t End() const { return header_->head.load(std::memory_order_acquire); }
  // Why the ring is not read any more; empty if it is valid.
  const std::string& fault() const { return fault_; }

  // Tells the library to stop writing.
  void Close();

  std::array<uint64_t, wire::kCounterCount> ReadCounters() const;
  wire::State ReadState() const;

 private:
  RingReader() = default;
  bool TakeOne(uint64_t head, const Visit& visit);
  // Whether a message at tail_ can have it; `head`: within the capacity.
  bool IsSize(uint32_t size, uint64_t head) const;
  void Free(uint32_t size);
  void Fault(std::string why);

  UniqueFd memfd_;
  wire::RingHeader* header_ = nullptr;
  std::byte* data_ = nullptr;  // capacity_ bytes, mapped twice in a row
  uint64_t capacity_ = 0;
  uint64_t tail_ = 0;  // the reader's own; the shared one is for the producers
  std::string fault_;
  std::vector<std::byte> message_;  // grows to the largest message so far
};

}  // namespace xpu
