// The parts of the walk in the program: what is known of addresses and stacks, and memory that is
// read without a fault.
#include "cupti_inject/launch_stacks.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

namespace xpu::inject {
namespace {

constexpr size_t kPage = 4096;

uint64_t AddressOf(const void* place) { return reinterpret_cast<uint64_t>(place); }

TEST(RuleCache, FindsWhatWasAddedUnderTheSameGeneration) {
  std::vector<RuleCache::Entry> entries(RuleCache::kBytes / sizeof(RuleCache::Entry));
  RuleCache cache;
  cache.Attach(entries.data());
  const UnwindRule rule{UnwindCfa::kRsp, UnwindRbp::kAtCfa, -16, 48};
  UnwindRule found;
  EXPECT_FALSE(cache.Find(0, 1, &found));
  EXPECT_FALSE(cache.Find(0x7f0000001234, 1, &found));
  cache.Add(0x7f0000001234, 1, rule);
  ASSERT_TRUE(cache.Find(0x7f0000001234, 1, &found));
  EXPECT_EQ(found, rule);
  EXPECT_FALSE(cache.Find(0x7f0000001234, 2, &found));
  EXPECT_FALSE(cache.Find(0x7f0000001235, 1, &found));
}

TEST(StackIds, OneEntryForEachHash) {
  StackIds ids;
  ASSERT_TRUE(ids.Open());
  const uint64_t frames[] = {1, 2, 3};
  const uint64_t hash = StackIds::HashOf(frames, 3, 0);
  EXPECT_NE(hash, StackIds::HashOf(frames, 2, 0));
  EXPECT_NE(hash, StackIds::HashOf(frames, 3, 1));
  StackIds::Entry* entry = ids.Find(hash);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(ids.Find(hash), entry);
  EXPECT_FALSE(entry->sent.load());
  EXPECT_GE(ids.NumberOf(entry), 1u);
  EXPECT_LE(ids.NumberOf(entry), StackIds::kSlots);
  // Sixteen of one slot, then it is full around there.
  for (uint64_t i = 1; i <= 15; ++i) EXPECT_NE(ids.Find(hash + (i << 32)), nullptr);
  EXPECT_EQ(ids.Find(hash + (uint64_t{16} << 32)), nullptr);
  EXPECT_EQ(ids.Find(hash), entry);
  ids.Close();
}

TEST(ScratchPool, GivesEveryPieceOnce) {
  ScratchPool pool;
  EXPECT_EQ(pool.Take(), nullptr);  // not open
  ASSERT_TRUE(pool.Open());
  std::vector<std::byte*> pieces;
  while (std::byte* piece = pool.Take()) pieces.push_back(piece);
  EXPECT_EQ(pieces.size(), 32u);
  pool.Give(pieces[7]);
  EXPECT_EQ(pool.Take(), pieces[7]);
  EXPECT_EQ(pool.Take(), nullptr);
  pool.Close();
}

// Two pages, the second one closed.
class StackMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    const uint64_t value = 0x1122334455667788;
    std::memcpy(memory_ + kPage - 8, &value, 8);
    mprotect(memory_ + kPage, kPage, PROT_NONE);
    ASSERT_TRUE(pool_.Open());
  }
  void TearDown() override {
    munmap(memory_, 2 * kPage);
    pool_.Close();
  }
  std::byte* memory_ = nullptr;
  ScratchPool pool_;
};

TEST_F(StackMemoryTest, ReadsElsewhereWithoutAFault) {
  StackMemory memory(0, 0, pool_);
  uint64_t value = 0;
  errno = 7;
  EXPECT_TRUE(memory.Read(AddressOf(memory_ + kPage - 8), &value));
  EXPECT_EQ(value, 0x1122334455667788u);
  EXPECT_FALSE(memory.Read(AddressOf(memory_ + kPage - 4), &value));
  EXPECT_FALSE(memory.Read(AddressOf(memory_ + kPage), &value));
  EXPECT_FALSE(memory.Read(0, &value));
  EXPECT_FALSE(memory.Read(UINT64_MAX - 3, &value));
  EXPECT_FALSE(memory.Read(uint64_t{1} << 63, &value));
  EXPECT_EQ(errno, 7);
}

TEST_F(StackMemoryTest, PiecesEndWhereMemoryEnds) {
  StackMemory memory(0, 0, pool_);
  size_t there = 0;
  const std::byte* piece = memory.Piece(AddressOf(memory_ + kPage - 24), 1000, &there);
  ASSERT_NE(piece, nullptr);
  EXPECT_EQ(there, 24u);
  EXPECT_EQ(std::memcmp(piece + 16, memory_ + kPage - 8, 8), 0);
  EXPECT_EQ(memory.Piece(AddressOf(memory_ + kPage), 1000, &there), nullptr);
  StackMemory direct(AddressOf(memory_), AddressOf(memory_ + kPage), pool_);
  EXPECT_EQ(direct.Piece(AddressOf(memory_ + 100), 1u << 14, &there), memory_ + 100);
  EXPECT_EQ(there, kPage - 100);
}

TEST(ThreadStack, CoversTheStackOfAThreadAndNoOther) {
  const uint64_t main_top = getauxval(AT_EXECFN);
  bool own = false, foreign = true;
  uint64_t low = 0, top = 0, here = 0, end = 0;
  auto elsewhere = std::make_unique<std::byte[]>(kPage);
  std::thread([&] {
    ThreadStack stack{};
    int local = 0;
    here = AddressOf(&local);
    own = stack.Covers(here, main_top);
    low = stack.low;
    top = stack.top;
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* start = nullptr;
    size_t size = 0;
    pthread_attr_getstack(&attributes, &start, &size);
    pthread_attr_destroy(&attributes);
    end = AddressOf(start) + size;
    foreign = stack.Covers(AddressOf(elsewhere.get()), main_top);
  }).join();
  EXPECT_TRUE(own);
  EXPECT_LE(low, here);
  EXPECT_GT(top, here);
  EXPECT_LE(top, end);
  EXPECT_FALSE(foreign);
}

}  // namespace
}  // namespace xpu::inject
