// The producing end of the ring of wire.h. Any thread may send at any time, also in a callback and
// in a signal handler that interrupted a send: no locks, no waiting, no allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cupti_inject/wire.h"

namespace xpu::inject {

class RingProducer {
 public:
  // `header` is followed by the data, mapped twice in a row. Call once, before the first Send.
  void Attach(wire::RingHeader* header, uint64_t capacity_bytes) {
    header_ = header;
    data_ = reinterpret_cast<std::byte*>(header) + wire::kHeaderBytes;
    capacity_bytes_ = capacity_bytes;
  }

  // Sends `message` (a *Message of wire.h, its header filled here), `payload` after it and `more`
  // after that. False: the ring is full, or the message larger than wire::kMaxMessageBytes.
  template <typename Message>
  bool Send(wire::MessageKind kind, const Message& message, const void* payload = nullptr,
            size_t payload_bytes = 0, const void* more = nullptr, size_t more_bytes = 0) {
    static_assert(std::is_standard_layout_v<Message> && sizeof(Message) % 8 == 0);
    const size_t used_bytes = sizeof(Message) + payload_bytes + more_bytes;
    const size_t size_bytes = (used_bytes + 7) / 8 * 8;
    if (size_bytes > wire::kMaxMessageBytes) return false;
    std::byte* place = Reserve(size_bytes);
    if (place == nullptr) return false;
    auto* shared = reinterpret_cast<wire::MessageHeader*>(place);
    shared->size_and_state.store(static_cast<uint32_t>(size_bytes), std::memory_order_relaxed);
    constexpr size_t kHeader = sizeof(wire::MessageHeader);
    std::memcpy(place + kHeader, reinterpret_cast<const std::byte*>(&message) + kHeader,
                sizeof(Message) - kHeader);
    if (payload_bytes > 0) std::memcpy(place + sizeof(Message), payload, payload_bytes);
    if (more_bytes > 0) std::memcpy(place + sizeof(Message) + payload_bytes, more, more_bytes);
    shared->kind = kind;
    shared->size_and_state.store(static_cast<uint32_t>(size_bytes) | wire::kReady,
                                 std::memory_order_release);
    return true;
  }

  void Count(wire::Counter counter, uint64_t n = 1) {
    header_->counters[counter][0].fetch_add(n, std::memory_order_relaxed);
  }
  uint64_t Counted(wire::Counter counter) const {
    return header_->counters[counter][0].load(std::memory_order_relaxed);
  }
  void SetState(wire::State state) { header_->state.store(state, std::memory_order_release); }
  bool IsHalfFull() const {
    return header_->head.load(std::memory_order_relaxed) -
               header_->tail.load(std::memory_order_relaxed) >
           capacity_bytes_ / 2;
  }
  bool closed() const { return header_->closed.load(std::memory_order_relaxed) != 0; }
  uint64_t patience_ns() const { return header_->patience_ns; }
  uint32_t heartbeat() const { return header_->heartbeat.load(std::memory_order_relaxed); }

 private:
  // The consumer wrote here last. Fetched now, in the background, the next message does not hold up
  // the locks that the program takes after it. Past the end of the memory it does nothing.
  static void FetchForWriting(const std::byte* place) {
    asm volatile("prefetchw %0\n\tprefetchw %1" : : "m"(place[0]), "m"(place[64]));
  }

  // Zeroed memory at a multiple of 8 bytes; nullptr: no room.
  std::byte* Reserve(uint64_t size_bytes) {
    while (true) {
      const uint64_t tail = seen_tail_.load(std::memory_order_acquire);
      uint64_t head = header_->head.load(std::memory_order_acquire);
      if (head + size_bytes - tail > capacity_bytes_) {
        // Full, unless the consumer has moved since.
        const uint64_t new_tail = header_->tail.load(std::memory_order_acquire);
        if (new_tail == tail) return nullptr;
        seen_tail_.store(new_tail, std::memory_order_release);
        continue;
      }
      if (header_->head.compare_exchange_weak(head, head + size_bytes, std::memory_order_acq_rel)) {
        std::byte* place = data_ + (head & (capacity_bytes_ - 1));
        FetchForWriting(place + size_bytes);
        return place;
      }
    }
  }

  wire::RingHeader* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::atomic<uint64_t> seen_tail_{0};  // of a while ago: its line is the consumer's
  uint64_t capacity_bytes_ = 0;         // our own copy: the header is the recorder's to write
};

}  // namespace xpu::inject
