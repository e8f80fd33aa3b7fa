// From a buffer that CUPTI has completed to messages in the ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/capture_gate.h"
#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/names.h"
#include "cupti_inject/ring_producer.h"

namespace xpu::inject {

class ActivityDrain {
 public:
  // How long one buffer may wait for room in the ring: on CUPTI's thread the program does not
  // notice. Only while the recorder lives, as its heartbeat shows.
  static constexpr uint64_t kPatienceNs = 100'000'000;

  // All outlive this object.
  bool Open(RingProducer* ring, const cupti::Functions* functions, CaptureGate* gate);
  void Close() { names_.Close(); }

  // Sends every record of `buffer` that the gate keeps. `may_wait`: this thread is not inside a
  // call of the program.
  void Drain(uint8_t* buffer, size_t valid_bytes, bool may_wait);
  // A record that we made, not CUPTI; its name is copied.
  void SendOwn(uint8_t* record, size_t bytes);
  // The number of records of work that has ended, and the longest time that any of it took.
  uint64_t ended_count() const { return ended_count_.load(std::memory_order_relaxed); }
  uint64_t longest_ns() const { return longest_ns_.load(std::memory_order_relaxed); }
  // Whether work of a graph's node was among them.
  bool has_nodes() const { return has_nodes_.load(std::memory_order_relaxed); }

 private:
  void SendRecord(uint8_t* record, size_t bytes);
  void NoteEnd(const uint8_t* record, size_t bytes);
  uint32_t TakeName(uint8_t* record, size_t bytes);
  // Calls `send` until it succeeds or patience is over.
  template <typename Send>
  bool SendPatiently(Send&& send);
  static bool SendName(void* drain, uint32_t id, const char* text, size_t bytes);

  RingProducer* ring_ = nullptr;
  const cupti::Functions* functions_ = nullptr;
  CaptureGate* gate_ = nullptr;
  Lock lock_;  // CUPTI has one thread that completes buffers, the exit of the program is another
  NameTable names_;
  bool may_wait_ = false;     // in this buffer
  uint64_t patience_ns_ = 0;  // what is left of it for this buffer
  uint32_t stalled_heartbeat_ = 0;
  std::atomic<bool> has_nodes_{false};
  std::atomic<uint64_t> ended_count_{0};
  std::atomic<uint64_t> longest_ns_{0};
  bool stalled_ = false;  // the recorder did not move when we waited last
};

}  // namespace xpu::inject
