#include "cupti_inject/ring_producer.h"

#include <thread>

#include <gtest/gtest.h>

#include "fake_recorder.h"

namespace xpu::inject {
namespace {

bool SendCall(RingProducer& producer, uint32_t thread, uint64_t number) {
  wire::ApiCallMessage message{};
  message.tid = thread;
  message.start_ns = number;
  return producer.Send(wire::MessageKind::kApiCall, message);
}

TEST(RingProducer, MessageArrivesWithPayloadAndPadding) {
  TestRing ring(64 << 10);
  RingProducer producer;
  producer.Attach(&ring.header(), ring.capacity_bytes());
  wire::NameMessage name{};
  name.name_id = 7;
  name.text_bytes = 5;
  ASSERT_TRUE(producer.Send(wire::MessageKind::kName, name, "hello", 5));
  const auto messages = ring.Drain();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].kind, wire::MessageKind::kName);
  EXPECT_EQ(messages[0].bytes.size(), 24u);  // 16 + 5, to the next multiple of 8
  EXPECT_EQ(messages[0].As<wire::NameMessage>().name_id, 7u);
  EXPECT_EQ(messages[0].Text<wire::NameMessage>(5), "hello");
  EXPECT_EQ(ring.pending_bytes(), 0u);
}

TEST(RingProducer, FullRingTakesExactlyItsCapacity) {
  TestRing ring(64 << 10);
  RingProducer producer;
  producer.Attach(&ring.header(), ring.capacity_bytes());
  const uint64_t fits = (64 << 10) / sizeof(wire::ApiCallMessage);
  uint64_t sent = 0;
  while (SendCall(producer, 1, sent)) ++sent;
  EXPECT_EQ(sent, fits);
  EXPECT_FALSE(SendCall(producer, 1, sent));
  EXPECT_EQ(ring.Drain().size(), fits);
  EXPECT_TRUE(SendCall(producer, 1, sent));
}

TEST(RingProducer, MessagesAreWholeAcrossTheEnd) {
  TestRing ring(64 << 10);
  RingProducer producer;
  producer.Attach(&ring.header(), ring.capacity_bytes());
  std::string text(1000, 'x');
  for (uint32_t i = 1; i <= 500; ++i) {  // 500 x 1016 bytes: around almost eight times
    text[999] = static_cast<char>('a' + i % 26);
    wire::NameMessage name{};
    name.name_id = i;
    name.text_bytes = 1000;
    ASSERT_TRUE(producer.Send(wire::MessageKind::kName, name, text.data(), text.size()));
    const auto messages = ring.Drain();
    ASSERT_EQ(messages.size(), 1u);
    ASSERT_EQ(messages[0].As<wire::NameMessage>().name_id, i);
    ASSERT_EQ(messages[0].Text<wire::NameMessage>(1000), text);
  }
}

TEST(RingProducer, RefusesWhatIsLargerThanAMessage) {
  TestRing ring(256 << 10);
  RingProducer producer;
  producer.Attach(&ring.header(), ring.capacity_bytes());
  const std::string text(wire::kMaxMessageBytes, 'x');
  wire::NameMessage name{};
  EXPECT_FALSE(producer.Send(wire::MessageKind::kName, name, text.data(),
                             wire::kMaxMessageBytes - sizeof(name) + 1));
  EXPECT_EQ(ring.pending_bytes(), 0u);
  EXPECT_TRUE(producer.Send(wire::MessageKind::kName, name, text.data(),
                            wire::kMaxMessageBytes - sizeof(name)));
}

// Every message whose Send succeeded arrives once, in its thread's order.
TEST(RingProducer, ManyThreadsOneConsumer) {
  constexpr uint32_t kThreads = 4;
  constexpr uint64_t kMessages = 20'000;
  TestRing ring(64 << 10);  // small, so that it is full often
  RingProducer producer;
  producer.Attach(&ring.header(), ring.capacity_bytes());
  std::atomic<uint64_t> refused{0};
  std::atomic<uint32_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kMessages; ++i) {
        producer.Count(wire::kCounterCalls);
        if (!SendCall(producer, t, i)) {
          refused.fetch_add(1);
          producer.Count(wire::kCounterCallsDropped);
        }
      }
      running.fetch_sub(1);
    });
  }
  uint64_t received = 0;
  uint64_t next[kThreads] = {};
  bool last_round = false;
  while (!last_round) {
    last_round = running.load() == 0;
    for (const Received& message : ring.Drain()) {
      const auto& call = message.As<wire::ApiCallMessage>();
      ASSERT_LT(call.tid, kThreads);
      ASSERT_GE(call.start_ns, next[call.tid]);
      next[call.tid] = call.start_ns + 1;
      ++received;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received + refused.load(), kThreads * kMessages);
  EXPECT_EQ(ring.counter(wire::kCounterCalls), kThreads * kMessages);
  EXPECT_EQ(ring.counter(wire::kCounterCallsDropped), refused.load());
  EXPECT_EQ(ring.pending_bytes(), 0u);
}

}  // namespace
}  // namespace xpu::inject
