#include "record/gpu/ring_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "cupti_inject/ring_producer.h"

namespace xpu {
namespace {

constexpr uint64_t kSmall = 128 << 10;

struct Taken {
  wire::MessageKind kind;
  std::vector<std::byte> bytes;
};

std::vector<Taken> DrainAll(RingReader& ring) {
  std::vector<Taken> taken;
  ring.Drain([&](wire::MessageKind kind, std::span<const std::byte> message) {
    taken.push_back({kind, {message.begin(), message.end()}});
  });
  return taken;
}

struct Producer : inject::RingProducer {
  explicit Producer(RingReader& ring) { Attach(&ring.header(), ring.capacity_bytes()); }
};

// Puts a header as a program of bad will might.
void Forge(RingReader& ring, uint64_t at, uint32_t word) {
  auto* data = reinterpret_cast<std::byte*>(&ring.header()) + wire::kHeaderBytes;
  auto* message = reinterpret_cast<wire::MessageHeader*>(data + at);
  message->kind = wire::MessageKind::kName;
  message->size_and_state.store(word, std::memory_order_release);
}

TEST(RingReader, TakesMessagesInOrder) {
  auto ring = RingReader::Create(kSmall);
  ASSERT_TRUE(ring.ok());
  Producer producer(*ring);
  wire::ClockPairMessage pair{};
  pair.before_ns = 1;
  pair.cupti_ns = 2;
  pair.after_ns = 3;
  ASSERT_TRUE(producer.Send(wire::MessageKind::kClockPair, pair));
  wire::NameMessage name{};
  name.name_id = 7;
  name.text_bytes = 5;
  ASSERT_TRUE(producer.Send(wire::MessageKind::kName, name, "hello", 5));
  const auto taken = DrainAll(*ring);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].kind, wire::MessageKind::kClockPair);
  ASSERT_EQ(taken[0].bytes.size(), sizeof(pair));
  EXPECT_EQ(std::memcmp(taken[0].bytes.data() + 8, &pair.before_ns, 24), 0);
  EXPECT_EQ(taken[1].kind, wire::MessageKind::kName);
  EXPECT_EQ(taken[1].bytes.size(), sizeof(name) + 8);
  EXPECT_EQ(std::memcmp(taken[1].bytes.data() + sizeof(name), "hello", 5), 0);
  EXPECT_TRUE(DrainAll(*ring).empty());
  EXPECT_FALSE(ring->HasTornMessage());
  EXPECT_EQ(ring->header().heartbeat.load(), 2u);
}

TEST(RingReader, CannotBeResized) {
  auto ring = RingReader::Create(kSmall);
  EXPECT_NE(::ftruncate(ring->memfd(), 0), 0);
  EXPECT_NE(::ftruncate(ring->memfd(), 1 << 30), 0);
}

TEST(RingReader, LapsManyTimesAndLosesNothing) {
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  std::vector<char> text(3000);
  uint64_t sent = 0;
  uint64_t taken = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    wire::NameMessage name{};
    name.name_id = i;
    name.text_bytes = i % 3000;
    std::fill(text.begin(), text.end(), static_cast<char>(i));
    if (producer.Send(wire::MessageKind::kName, name, text.data(), name.text_bytes)) ++sent;
    if (i % 20 != 19) continue;
    for (const Taken& message : DrainAll(*ring)) {
      uint32_t id = 0;
      uint32_t size = 0;
      std::memcpy(&id, message.bytes.data() + 8, 4);
      std::memcpy(&size, message.bytes.data() + 12, 4);
      EXPECT_EQ(size, id % 3000);
      const auto value = std::byte{static_cast<unsigned char>(id)};
      EXPECT_TRUE(std::all_of(message.bytes.begin() + 16, message.bytes.begin() + 16 + size,
                              [&](std::byte byte) { return byte == value; }));
      ++taken;
    }
  }
  EXPECT_EQ(sent, 2000u);
  EXPECT_EQ(taken, 2000u);
}

TEST(RingReader, ManyProducers) {
  constexpr int kThreads = 4;
  constexpr uint64_t kEach = 30'000;
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 1; i <= kEach; ++i) {
        wire::ClockPairMessage pair{};
        pair.before_ns = static_cast<uint64_t>(t);
        pair.cupti_ns = i;
        pair.after_ns = i * 31 + static_cast<uint64_t>(t);
        while (!producer.Send(wire::MessageKind::kClockPair, pair)) std::this_thread::yield();
      }
      --running;
    });
  }
  uint64_t last[kThreads] = {};
  uint64_t wrong = 0;
  const auto take = [&] {
    ring->Drain([&](wire::MessageKind, std::span<const std::byte> message) {
      uint64_t values[3];
      std::memcpy(values, message.data() + 8, sizeof(values));
      if (values[0] >= kThreads || values[1] != last[values[0]] + 1 ||
          values[2] != values[1] * 31 + values[0]) {
        ++wrong;
      } else {
        last[values[0]] = values[1];
      }
    });
  };
  while (running > 0) take();
  take();
  for (std::thread& thread : threads) thread.join();
  take();
  EXPECT_EQ(wrong, 0u);
  for (const uint64_t count : last) EXPECT_EQ(count, kEach);
  EXPECT_EQ(ring->fault(), "");
}

TEST(RingReader, StopsAtAMessageThatIsNotReady) {
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  ASSERT_TRUE(producer.Send(wire::MessageKind::kClockPair, wire::ClockPairMessage{}));
  const uint64_t torn = ring->header().head.fetch_add(64);  // a producer that died here
  ASSERT_TRUE(producer.Send(wire::MessageKind::kClockPair, wire::ClockPairMessage{}));
  EXPECT_EQ(DrainAll(*ring).size(), 1u);
  EXPECT_TRUE(ring->HasTornMessage());
  EXPECT_EQ(ring->fault(), "");
  Forge(*ring, torn, 64 | wire::kReady);  // it was only slow
  EXPECT_EQ(DrainAll(*ring).size(), 2u);
  EXPECT_FALSE(ring->HasTornMessage());
}

TEST(RingReader, WhatFollowsATornMessageIsRead) {
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  const uint64_t torn = ring->header().head.fetch_add(64);
  ASSERT_TRUE(producer.Send(wire::MessageKind::kClockPair, wire::ClockPairMessage{}));
  EXPECT_TRUE(DrainAll(*ring).empty());
  EXPECT_FALSE(ring->SkipTornMessage(ring->End()));  // its producer died before it wrote the size
  Forge(*ring, torn, 64);
  EXPECT_TRUE(DrainAll(*ring).empty());
  EXPECT_TRUE(ring->SkipTornMessage(ring->End()));
  EXPECT_EQ(DrainAll(*ring).size(), 1u);
  EXPECT_FALSE(ring->SkipTornMessage(ring->End()));
  EXPECT_FALSE(ring->HasTornMessage());
  for (const uint32_t size : {4u, 12u, 72u, wire::kMaxMessageBytes + 8, 0x7fffffffu}) {
    auto forged = RingReader::Create(kSmall);
    forged->header().head = 64;
    Forge(*forged, 0, size);
    EXPECT_FALSE(forged->SkipTornMessage(forged->End())) << size;
  }
}

TEST(RingReader, ForgedSizes) {
  for (const uint32_t size : {0u, 4u, 7u, 12u, 1000u, wire::kMaxMessageBytes + 8, 0x7fffffffu}) {
    auto ring = RingReader::Create(kSmall);
    ring->header().head = 64;
    Forge(*ring, 0, size | wire::kReady);
    EXPECT_TRUE(DrainAll(*ring).empty()) << size;
    EXPECT_NE(ring->fault(), "") << size;
    EXPECT_EQ(ring->header().closed.load(), 1u);
    EXPECT_TRUE(DrainAll(*ring).empty());  // never again
  }
}

TEST(RingReader, ForgedHeads) {
  for (const uint64_t head : {kSmall + 8, uint64_t{4}, ~uint64_t{0}, uint64_t{1} << 63}) {
    auto ring = RingReader::Create(kSmall);
    ring->header().head = head;
    EXPECT_TRUE(DrainAll(*ring).empty());
    EXPECT_NE(ring->fault(), "") << head;
  }
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  ASSERT_TRUE(producer.Send(wire::MessageKind::kClockPair, wire::ClockPairMessage{}));
  EXPECT_EQ(DrainAll(*ring).size(), 1u);
  ring->header().head = 0;  // backwards
  EXPECT_TRUE(DrainAll(*ring).empty());
  EXPECT_NE(ring->fault(), "");
}

TEST(RingReader, TheSharedTailAndCapacityAreNotTrusted) {
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  ring->header().tail = 0x123456789;
  ring->header().capacity_bytes = uint64_t{1} << 40;
  ring->header().tail = 0;
  ASSERT_TRUE(producer.Send(wire::MessageKind::kClockPair, wire::ClockPairMessage{}));
  ring->header().tail = 0xfffffffffffffff8;
  EXPECT_EQ(DrainAll(*ring).size(), 1u);
  EXPECT_EQ(ring->header().tail.load(), sizeof(wire::ClockPairMessage));
}

TEST(RingReader, CountersAndState) {
  auto ring = RingReader::Create(kSmall);
  Producer producer(*ring);
  producer.Count(wire::kCounterCuptiDropped, 5);
  producer.Count(wire::kCounterMarkers);
  EXPECT_EQ(ring->ReadCounters()[wire::kCounterCuptiDropped], 5u);
  EXPECT_EQ(ring->ReadCounters()[wire::kCounterMarkers], 1u);
  EXPECT_EQ(ring->ReadState(), wire::State::kConnected);
  producer.SetState(wire::State::kFinished);
  EXPECT_EQ(ring->ReadState(), wire::State::kFinished);
}

}  // namespace
}  // namespace xpu
