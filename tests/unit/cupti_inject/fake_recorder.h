// The other end of wire.h, small: a socket that answers as set up, and a ring that is read by hand.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cupti_inject/handshake.h"
#include "cupti_inject/wire.h"
#include "format/base/handle.h"

namespace xpu::inject {

struct Received {
  wire::MessageKind kind;
  std::vector<std::byte> bytes;

  template <typename Message>
  const Message& As() const {
    return *reinterpret_cast<const Message*>(bytes.data());
  }
  // What is after the message.
  template <typename Message>
  std::string Text(size_t size) const {
    return {reinterpret_cast<const char*>(bytes.data()) + sizeof(Message), size};
  }
};

// A ring in a memfd, mapped twice in a row.
class TestRing {
 public:
  explicit TestRing(uint64_t capacity_bytes, bool sealed = true);
  TestRing(const TestRing&) = delete;
  TestRing& operator=(const TestRing&) = delete;
  ~TestRing();

  int memfd() const { return memfd_.get(); }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  wire::RingHeader& header() { return *header_; }
  uint64_t counter(wire::Counter counter) const { return header_->counters[counter][0].load(); }

  // The ready messages, in order; their room is free afterwards.
  std::vector<Received> Drain();
  // Bytes reserved and not consumed.
  uint64_t pending_bytes() const { return header_->head.load() - header_->tail.load(); }

 private:
  UniqueFd memfd_;
  uint64_t capacity_bytes_;
  wire::RingHeader* header_;
  std::byte* data_;
};

// The first `bytes` of it, with up to two descriptors.
void SendReply(int connection, const wire::HelloReply& reply, size_t bytes, const int* fds,
               size_t fd_count);

enum class Answer {
  kRing,
  kNothing,       // accepts the connection and says no word
  kHalf,          // half a reply
  kRefuse,        // accepted = 0
  kNoDescriptor,  // accepted, without the ring
  kWrongVersion,
  kHangUp,
  kTwoDescriptors,
};

// Listens on an abstract socket and answers everybody on a thread of its own. A wrong secret is
// refused.
class FakeRecorder {
 public:
  static constexpr uint64_t kSession = 0x0123456789abcdef;

  explicit FakeRecorder(TestRing* ring, Answer answer = Answer::kRing);
  FakeRecorder(const FakeRecorder&) = delete;
  FakeRecorder& operator=(const FakeRecorder&) = delete;
  ~FakeRecorder();

  std::string Environment() const;  // value of XPU_INJECT
  ConnectionString connection_string() const;
  int connections() const { return connections_.load(); }
  wire::Hello last_hello() const { return hello_; }  // once connections() says there was one

 private:
  void Serve();
  void AnswerOne(int connection);

  TestRing* ring_;
  Answer answer_;
  std::string name_;
  UniqueFd socket_;
  UniqueFd stop_;
  wire::Hello hello_{};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace xpu::inject
