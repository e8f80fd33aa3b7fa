#include "cupti_inject/capture_gate.h"

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "cupti_inject/cupti_abi.h"
#include "fake_recorder.h"

namespace xpu::inject {
namespace {

TextView View(const char* text) { return {text, std::strlen(text)}; }

TEST(RecordedCalls, EachIdIsForItself) {
  RecordedCalls calls;
  ASSERT_TRUE(calls.Open());
  for (uint32_t id = 1; id < 1000; ++id) calls.Note(id, id % 3 == 0);
  for (uint32_t id = 1; id < 1000; ++id) {
    EXPECT_EQ(calls.IsRecorded(id, false), id % 3 == 0) << id;
    EXPECT_EQ(calls.IsRecorded(id, true), id % 3 == 0) << id;
  }
}

TEST(RecordedCalls, AnIdThatNobodyNotedIsAsTheOneBefore) {
  RecordedCalls calls;
  ASSERT_TRUE(calls.Open());
  EXPECT_TRUE(calls.IsRecorded(5, true));
  EXPECT_FALSE(calls.IsRecorded(5, false));
  calls.Note(31, true);
  calls.Note(64, false);
  EXPECT_FALSE(calls.IsRecorded(30, false));
  EXPECT_TRUE(calls.IsRecorded(63, false));
  EXPECT_FALSE(calls.IsRecorded(65, true));
  EXPECT_FALSE(calls.IsRecorded(64 + 4000, true));
  EXPECT_TRUE(calls.IsRecorded(64 + 5000, true));  // too far away
}

TEST(RecordedCalls, NumbersComeAgain) {
  RecordedCalls calls;
  ASSERT_TRUE(calls.Open());
  calls.Note(7, false);
  calls.Note(7 + RecordedCalls::kIds, true);
  EXPECT_TRUE(calls.IsRecorded(7 + RecordedCalls::kIds, false));
  calls.Note(UINT32_MAX, false);
  EXPECT_FALSE(calls.IsRecorded(0, true));
}

class GateTest : public ::testing::Test {
 protected:
  void Open(uint32_t settings, std::string_view range = {}) {
    ring_.header().settings = settings;
    range.copy(ring_.header().capture_range, wire::kCaptureRangeBytes);
    producer_.Attach(&ring_.header(), ring_.capacity_bytes());
    gate_.Open(&ring_.header(), &producer_);
  }
  // 'o' and 'c', in their order.
  std::string Reported() {
    std::string told;
    const std::byte* at = reinterpret_cast<const std::byte*>(&ring_.header()) + wire::kHeaderBytes;
    const uint64_t head = ring_.header().head.load();
    for (uint64_t place = 0; place < head; place += sizeof(wire::SwitchMessage)) {
      told += reinterpret_cast<const wire::SwitchMessage*>(at + place)->is_open != 0 ? 'o' : 'c';
    }
    return told;
  }

  static constexpr uint32_t kRange = wire::kSettingPauses | wire::kSettingNvtxRange;

  TestRing ring_{64 << 10};
  RingProducer producer_;
  CaptureGate gate_;
  OpenCapture one_{};
  OpenCapture other_{};
};

TEST_F(GateTest, IsOpenWhereNobodyMayCloseIt) {
  Open(0);
  ring_.header().gate = wire::kGatePaused | wire::kGateEnds;
  EXPECT_TRUE(gate_.is_on());
  EXPECT_FALSE(gate_.ends());
  EXPECT_TRUE(gate_.Admit(1));
}

TEST_F(GateTest, TheRecorderClosesIt) {
  Open(wire::kSettingPauses | wire::kSettingMayEnd);
  EXPECT_TRUE(gate_.Admit(1));
  ring_.header().gate = wire::kGatePaused;
  EXPECT_FALSE(gate_.Admit(2));
  ring_.header().gate = wire::kGateEnds;
  EXPECT_TRUE(gate_.ends());
}

TEST_F(GateTest, RecordsFollowTheirCalls) {
  Open(wire::kSettingPauses);
  cupti::Kernel kernel{};
  kernel.kind = cupti::kKindConcurrentKernel;
  cupti::Device device{};
  device.kind = cupti::kKindDevice;
  const auto keeps = [&](uint32_t correlation_id) {
    kernel.correlation_id = correlation_id;
    return gate_.Keeps(reinterpret_cast<const uint8_t*>(&kernel), sizeof(kernel));
  };
  gate_.Admit(10);
  ring_.header().gate = wire::kGatePaused;
  gate_.Admit(11);
  EXPECT_TRUE(keeps(10));
  EXPECT_FALSE(keeps(11));
  ring_.header().gate = 0;
  EXPECT_TRUE(keeps(10));
  EXPECT_FALSE(keeps(11));
  ring_.header().gate = wire::kGatePaused;
  EXPECT_FALSE(keeps(0));
  EXPECT_TRUE(gate_.Keeps(reinterpret_cast<const uint8_t*>(&device), sizeof(device)));
  EXPECT_TRUE(gate_.Keeps(reinterpret_cast<const uint8_t*>(&kernel), 2));
}

// Whatever the recorder allows: at its end the library closes it.
TEST_F(GateTest, AfterAnAttachWorkOfUnseenCallsIsLeftOut) {
  gate_.Open(&ring_.header(), &producer_, true);
  cupti::Kernel kernel{};
  kernel.kind = cupti::kKindConcurrentKernel;
  const auto keeps = [&](uint32_t correlation_id) {
    kernel.correlation_id = correlation_id;
    return gate_.Keeps(reinterpret_cast<const uint8_t*>(&kernel), sizeof(kernel));
  };
  EXPECT_TRUE(gate_.Admit(10));
  EXPECT_TRUE(gate_.Admit(12));
  EXPECT_FALSE(gate_.Admit(0));  // CUPTI did not see it begin
  EXPECT_TRUE(keeps(10));
  EXPECT_TRUE(keeps(12));
  for (const uint32_t unseen : {0, 9, 11, 13}) EXPECT_FALSE(keeps(unseen)) << unseen;
  EXPECT_EQ(gate_.earlier(), 4U);
  gate_.Settle();
  EXPECT_FALSE(keeps(11));
  EXPECT_TRUE(keeps(13));  // of a call that is not watched
  cupti::Overhead overhead{};
  overhead.kind = cupti::kKindOverhead;
  EXPECT_TRUE(gate_.Keeps(reinterpret_cast<const uint8_t*>(&overhead), sizeof(overhead)));
  EXPECT_EQ(gate_.earlier(), 5U);
  gate_.Shut();
  EXPECT_FALSE(gate_.Admit(14));
  EXPECT_FALSE(keeps(14));
  EXPECT_TRUE(keeps(12));
  gate_.Close();
}

TEST_F(GateTest, TheProfilerOpensIt) {
  Open(wire::kSettingPauses | wire::kSettingProfilerApi);
  EXPECT_FALSE(gate_.is_on());
  gate_.SetProfiler(true);
  gate_.SetProfiler(true);
  EXPECT_TRUE(gate_.is_on());
  ring_.header().gate = wire::kGatePaused;
  EXPECT_FALSE(gate_.is_on());
  ring_.header().gate = 0;
  gate_.SetProfiler(false);
  EXPECT_FALSE(gate_.is_on());
  ring_.header().gate = wire::kGateOthersOpen;
  EXPECT_TRUE(gate_.is_on());
  EXPECT_EQ(Reported(), "oc");
}

TEST_F(GateTest, RangesNestAndOverlap) {
  Open(kRange, std::string_view("step\0\0", 6));
  gate_.Push(0, View("epoch"), one_);
  EXPECT_FALSE(gate_.is_on());
  gate_.Push(0, View("step"), one_);
  gate_.Push(0, View("step"), one_);
  gate_.Push(0, View("step"), other_);
  gate_.Pop(0, one_);
  gate_.Pop(0, one_);
  EXPECT_TRUE(gate_.is_on());  // of the other thread
  gate_.Pop(0, one_);          // the epoch
  gate_.Pop(0, other_);
  EXPECT_FALSE(gate_.is_on());
  gate_.Pop(0, other_);
  gate_.Start(0, View("step"), 7);
  gate_.End(8);
  EXPECT_TRUE(gate_.is_on());
  gate_.End(7);
  EXPECT_EQ(Reported(), "ococ");
}

TEST_F(GateTest, DomainsAreKeptApart) {
  Open(kRange, std::string_view("step\0app\0", 9));
  gate_.NameDomain(1, View("other"));
  gate_.NameDomain(2, View("app"));
  gate_.Push(0, View("step"), one_);
  gate_.Push(1, View("step"), one_);
  EXPECT_FALSE(gate_.is_on());
  gate_.Push(2, View("step"), one_);
  gate_.Push(1, View("step"), one_);
  gate_.Pop(1, one_);
  gate_.Pop(1, one_);
  EXPECT_TRUE(gate_.is_on());
  gate_.Pop(2, one_);
  EXPECT_FALSE(gate_.is_on());
}

TEST_F(GateTest, AnyDomainWillDo) {
  Open(kRange, std::string_view("step\0*\0", 7));
  gate_.Push(5000, View("step"), one_);
  EXPECT_TRUE(gate_.is_on());
  gate_.Push(0, View("step"), one_);
  gate_.Pop(0, one_);
  EXPECT_TRUE(gate_.is_on());
  gate_.Pop(5000, one_);
  EXPECT_FALSE(gate_.is_on());
}

TEST_F(GateTest, TheDefaultDomainIsNotAnEmptyName) {
  Open(kRange, std::string_view("step\0\0", 6));
  gate_.NameDomain(1, View(""));
  gate_.Push(1, View("step"), one_);
  EXPECT_FALSE(gate_.is_on());
}

}  // namespace
}  // namespace xpu::inject
