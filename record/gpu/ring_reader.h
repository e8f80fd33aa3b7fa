// The recorder's end of the ring that one program's injected library writes (cupti_inject/wire.h).
//
// The memory is shared with the program, so nothing in it is trusted and nothing is read twice:
// sizes and places are checked against the reader's own numbers, messages are copied out before
// they are looked at. A ring that breaks the rules is not read again.
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
  // Creates and maps the memory. `capacity_bytes`: a power of two of whole pages.
  // `settings`: bits of wire::kSetting..., for the library.
  static Result<RingReader> Create(uint64_t capacity_bytes = wire::kDefaultCapacityBytes,
                                   uint32_t settings = 0);

  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&&) = delete;
  ~RingReader();

  // What the library is given: it maps it as the reader does.
  int memfd() const { return memfd_.get(); }
  uint64_t capacity_bytes() const { return capacity_; }
  wire::RingHeader& header() const { return *header_; }

  // A message: 8-byte aligned, with its MessageHeader, holds during the call.
  using Visit = std::function<void(wire::MessageKind kind, std::span<const std::byte> message)>;

  // Takes the messages that are ready, in order, and gives their room back. Adds one to the
  // heartbeat. Stops at a message that is not finished.
  void Drain(const Visit& visit);

  // After the last Drain, when no producer is left: room was reserved for a message that never
  // became ready.
  bool HasTornMessage() const;
  // Why the ring is no longer read; empty: it is in order.
  const std::string& fault() const { return fault_; }

  // Tells the library that nobody will read any more.
  void Close();

  std::array<uint64_t, wire::kCounterCount> ReadCounters() const;
  wire::State ReadState() const;

 private:
  RingReader() = default;
  bool TakeOne(uint64_t head, const Visit& visit);
  void Fault(std::string why);

  UniqueFd memfd_;
  wire::RingHeader* header_ = nullptr;
  std::byte* data_ = nullptr;  // capacity_ bytes, mapped twice in a row
  uint64_t capacity_ = 0;
  uint64_t tail_ = 0;  // ours; the shared one is for the producers
  std::string fault_;
  std::vector<std::byte> message_;  // as large as any has been
};

}  // namespace xpu
