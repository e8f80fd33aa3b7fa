#include "cupti_inject/buffers.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace xpu::inject {
namespace {

bool IsZero(const uint8_t* buffer) {
  return std::all_of(buffer, buffer + kBufferBytes, [](uint8_t byte) { return byte == 0; });
}

TEST(BufferPool, BuffersAreZeroAlsoWhenReused) {
  BufferPool pool;
  uint8_t* first = pool.Take();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 8, 0u);
  EXPECT_TRUE(IsZero(first));
  std::memset(first, 0xff, 1000);
  pool.Give(first, 1000);
  uint8_t* second = pool.Take();
  EXPECT_EQ(second, first);
  EXPECT_TRUE(IsZero(second));
  pool.Give(second, 0);
}

TEST(BufferPool, CountsWhatIsOut) {
  BufferPool pool;
  uint8_t* a = pool.Take();
  uint8_t* b = pool.Take();
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.outstanding(), 2u);
  pool.Give(a, 0);
  EXPECT_EQ(pool.outstanding(), 1u);
  pool.Give(b, 0);
  EXPECT_EQ(pool.outstanding(), 0u);
}

TEST(BufferPool, KnowsSinceWhenItsOldestBufferIsOut) {
  BufferPool pool;
  EXPECT_EQ(pool.OldestNs(), UINT64_MAX);
  const uint64_t before_ns = MonotonicNs();
  uint8_t* first = pool.Take();
  const uint64_t between_ns = MonotonicNs();
  uint8_t* second = pool.Take();
  EXPECT_GE(pool.OldestNs(), before_ns);
  EXPECT_LE(pool.OldestNs(), between_ns);
  pool.Give(first, 0);
  EXPECT_GE(pool.OldestNs(), between_ns);
  pool.Give(second, 0);
  EXPECT_EQ(pool.OldestNs(), UINT64_MAX);
}

TEST(BufferPool, ManyThreadsNeverShareABuffer) {
  BufferPool pool;
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (uint8_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        uint8_t* buffer = pool.Take();
        if (buffer[0] != 0) shared = true;
        std::memset(buffer, t, 64);
        std::this_thread::yield();
        if (buffer[63] != t) shared = true;
        pool.Give(buffer, 64);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared.load());
  EXPECT_EQ(pool.outstanding(), 0u);
}

TEST(BufferPool, GivesBackToTheSystemWhatIsTooMuch) {
  BufferPool pool;
  std::vector<uint8_t*> buffers;
  for (int i = 0; i < 200; ++i) buffers.push_back(pool.Take());
  EXPECT_EQ(std::set<uint8_t*>(buffers.begin(), buffers.end()).size(), 200u);
  for (uint8_t* buffer : buffers) pool.Give(buffer, kBufferBytes);
  EXPECT_EQ(pool.outstanding(), 0u);
}

bool IsMapped(const uint8_t* address) {
  unsigned char resident = 0;
  return mincore(const_cast<uint8_t*>(address), 1, &resident) == 0;
}

// CUPTI may still write to it, until the session after that.
TEST(BufferPool, CloseFreesWhatIsInAndLaterWhatWasOut) {
  BufferPool first, second, third;
  uint8_t* in = first.Take();
  uint8_t* out = first.Take();
  first.Give(in, 0);
  EXPECT_TRUE(first.IsTaken(out));
  EXPECT_FALSE(first.IsTaken(in));
  first.Close(true);
  EXPECT_EQ(first.outstanding(), 0u);
  EXPECT_FALSE(IsMapped(in));
  EXPECT_TRUE(IsMapped(out));
  EXPECT_FALSE(second.IsTaken(out));
  second.Close(true);
  EXPECT_FALSE(IsMapped(out));
  third.Close(true);
}

// It gives them back some day.
TEST(BufferPool, WhatALivingCuptiHasIsNeverFreed) {
  BufferPool first, second;
  uint8_t* out = first.Take();
  first.Close(false);
  second.Close(true);
  EXPECT_TRUE(IsMapped(out));
  BufferPool::Unmap(out);
}

// CUPTI asks for buffers and gives them back where it could not be left, for the life of a program.
TEST(BufferPool, BuffersOfNoSessionAreFreedWhenTheyComeBack) {
  BufferPool pool;
  uint8_t* of_pool = pool.Take();
  std::vector<uint8_t*> alone;
  for (int i = 0; i < 100; ++i) alone.push_back(BufferPool::TakeAlone());
  for (uint8_t* buffer : alone) {
    EXPECT_FALSE(pool.IsTaken(buffer));
    EXPECT_TRUE(BufferPool::GiveAlone(buffer));
    EXPECT_FALSE(IsMapped(buffer));
    EXPECT_FALSE(BufferPool::GiveAlone(buffer));
  }
  EXPECT_FALSE(BufferPool::GiveAlone(of_pool));
  EXPECT_TRUE(IsMapped(of_pool));
  pool.Give(of_pool, 0);
  pool.Close(true);
}

}  // namespace
}  // namespace xpu::inject
