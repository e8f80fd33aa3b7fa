#include "cupti_inject/activity_drain.h"

#include <thread>

#include <gtest/gtest.h>

#include "cupti_inject/record_pointers.h"
#include "fake_recorder.h"

namespace xpu::inject {
namespace {

// A buffer under construction; the walk over it is what cuptiActivityGetNextRecord would do.
std::vector<size_t> g_offsets;
cupti::Result g_end = cupti::kErrorMaxLimitReached;

cupti::Result GetNextRecord(uint8_t* buffer, size_t /*valid_size*/, void** record) {
  for (const size_t offset : g_offsets) {
    if (*record == nullptr || buffer + offset > *record) {
      *record = buffer + offset;
      return cupti::kSuccess;
    }
  }
  return g_end;
}

cupti::Kernel KernelNamed(const char* name, uint32_t correlation_id) {
  cupti::Kernel kernel{};
  kernel.kind = cupti::kKindConcurrentKernel;
  kernel.name = reinterpret_cast<uint64_t>(name);
  kernel.correlation_id = correlation_id;
  kernel.access_policy_window = 0x1234;
  return kernel;
}

class DrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_offsets.clear();
    g_end = cupti::kErrorMaxLimitReached;
    producer_.Attach(&ring_.header(), ring_.capacity_bytes());
    functions_.get_next_record = &GetNextRecord;
    ASSERT_TRUE(drain_.Open(&producer_, &functions_, &gate_));
  }
  void TearDown() override { drain_.Close(); }

  void Add(const void* record, size_t bytes) {
    g_offsets.push_back(buffer_.size());
    const auto* begin = static_cast<const uint8_t*>(record);
    buffer_.insert(buffer_.end(), begin, begin + bytes);
  }
  void Drain(bool may_wait = false) { drain_.Drain(buffer_.data(), buffer_.size(), may_wait); }

  TestRing ring_{64 << 10};
  RingProducer producer_;
  cupti::Functions functions_;
  CaptureGate gate_;  // open
  ActivityDrain drain_;
  std::vector<uint8_t> buffer_;
};

TEST_F(DrainTest, RecordsOfEverySizeArriveWithTheirNames) {
  const cupti::Kernel kernel = KernelNamed("_Z6kernelv", 5);
  cupti::Memcpy copy{};
  copy.kind = cupti::kKindMemcpy;
  copy.size_bytes = 4096;
  cupti::Overhead overhead{};
  overhead.kind = cupti::kKindOverhead;
  overhead.data = 0x7777;
  Add(&kernel, sizeof(kernel));
  Add(&copy, 64);     // of an old CUPTI
  Add(&kernel, 160);  // likewise, the same name
  const uint8_t unknown[24] = {200};
  Add(unknown, sizeof(unknown));
  Add(&overhead, sizeof(overhead));
  Drain();

  const auto messages = ring_.Drain();
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0].kind, wire::MessageKind::kName);
  EXPECT_EQ(messages[0].Text<wire::NameMessage>(10), "_Z6kernelv");
  const uint32_t sizes[] = {216, 64, 160, 24, 56};
  const uint32_t names[] = {1, 0, 1, 0, 0};
  for (size_t i = 0; i < 5; ++i) {
    const Received& message = messages[i + 1];
    ASSERT_EQ(message.kind, wire::MessageKind::kActivity);
    EXPECT_EQ(message.As<wire::ActivityMessage>().record_size_bytes, sizes[i]);
    EXPECT_EQ(message.As<wire::ActivityMessage>().name_id, names[i]);
    EXPECT_EQ(message.bytes.size(), sizeof(wire::ActivityMessage) + sizes[i]);
  }
  // The bytes as they were, but for the pointers.
  cupti::Kernel expected = kernel;
  expected.name = 0;
  expected.access_policy_window = 0;
  EXPECT_EQ(messages[1].Text<wire::ActivityMessage>(216),
            std::string(reinterpret_cast<const char*>(&expected), 216));
  EXPECT_EQ(messages[3].Text<wire::ActivityMessage>(160),
            std::string(reinterpret_cast<const char*>(&expected), 160));
  EXPECT_EQ(messages[4].Text<wire::ActivityMessage>(24),
            std::string(reinterpret_cast<const char*>(unknown), 24));
  EXPECT_EQ(messages[5].Text<wire::ActivityMessage>(56).substr(48), std::string(8, '\0'));
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), 5u);
  EXPECT_EQ(ring_.counter(wire::kCounterActivitiesDropped), 0u);
  EXPECT_EQ(ring_.counter(wire::kCounterCuptiErrors), 0u);
}

TEST_F(DrainTest, FullRingIsCountedExactly) {
  const cupti::Kernel kernel = KernelNamed("_Z6kernelv", 5);
  for (int i = 0; i < 400; ++i) Add(&kernel, sizeof(kernel));
  Drain();
  const uint64_t name_bytes = sizeof(wire::NameMessage) + 16;
  const uint64_t fits = ((64 << 10) - name_bytes) / (sizeof(wire::ActivityMessage) + 216);
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), 400u);
  EXPECT_EQ(ring_.counter(wire::kCounterActivitiesDropped), 400 - fits);
  EXPECT_EQ(ring_.Drain().size(), fits + 1);
}

TEST_F(DrainTest, WaitsForRoomWhileTheRecorderLives) {
  const cupti::Kernel kernel = KernelNamed("_Z6kernelv", 5);
  for (int i = 0; i < 400; ++i) Add(&kernel, sizeof(kernel));
  std::atomic<bool> done{false};
  uint64_t received = 0;
  std::thread recorder([&] {
    bool last = false;
    while (!last) {
      last = done.load();
      received += ring_.Drain().size();
    }
  });
  Drain(/*may_wait=*/true);
  done.store(true);
  recorder.join();
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), 400u);
  EXPECT_EQ(received, 401u);
}

TEST_F(DrainTest, StoppedRecorderIsWaitedForOnce) {
  const cupti::Kernel kernel = KernelNamed("_Z6kernelv", 5);
  for (int i = 0; i < 400; ++i) Add(&kernel, sizeof(kernel));
  Drain(/*may_wait=*/true);
  const uint64_t dropped = ring_.counter(wire::kCounterActivitiesDropped);
  EXPECT_LT(dropped, 400u);
  // Each of these would wait 100 ms if nothing were learned from the first.
  const uint64_t begin = MonotonicNs();
  for (int i = 0; i < 100; ++i) Drain(/*may_wait=*/true);
  EXPECT_LT(MonotonicNs() - begin, 100 * ActivityDrain::kPatienceNs / 2);
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), 101u * 400);
  EXPECT_EQ(ring_.counter(wire::kCounterActivitiesDropped), dropped + 100 * 400);
}

TEST_F(DrainTest, BrokenWalkIsCountedAndEnds) {
  const cupti::Kernel kernel = KernelNamed("_Z6kernelv", 5);
  Add(&kernel, sizeof(kernel));
  g_end = cupti::kErrorInvalidKind;
  Drain();
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), 1u);
  EXPECT_EQ(ring_.counter(wire::kCounterCuptiErrors), 1u);

  g_end = cupti::kErrorMaxLimitReached;
  g_offsets = {0, 4096};  // a record after the end
  Drain();
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), 2u);
  EXPECT_EQ(ring_.counter(wire::kCounterCuptiErrors), 2u);
}

TEST_F(DrainTest, EmptyBufferIsNothing) {
  Drain();
  EXPECT_TRUE(ring_.Drain().empty());
  EXPECT_EQ(ring_.counter(wire::kCounterCuptiErrors), 0u);
}

TEST(RecordPointers, OfTheKindsThatHaveThem) {
  EXPECT_EQ(NameOffset(cupti::kKindConcurrentKernel), 104u);
  EXPECT_EQ(NameOffset(cupti::kKindDevice), 136u);
  EXPECT_EQ(NameOffset(cupti::kKindJit), 56u);
  EXPECT_EQ(NameOffset(cupti::kKindMemcpy), 0u);
  EXPECT_EQ(OtherPointerOffset(cupti::kKindConcurrentKernel), 160u);
  EXPECT_EQ(OtherPointerOffset(cupti::kKindOverhead), 48u);
  EXPECT_EQ(OtherPointerOffset(cupti::kKindDevice), 0u);
}

}  // namespace
}  // namespace xpu::inject
