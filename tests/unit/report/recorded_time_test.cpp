#include "report/model/recorded_time.h"

#include <memory>

#include <gtest/gtest.h>

#include "report/query/gpu_busy.h"
#include "report/query/gpu_idle.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

class RecordedTimeTest : public testing::Test {
 protected:
  void Switch(uint64_t time_ns, bool is_on, std::string_view cause) {
    builder_.events.recording_switches.push_back({time_ns, is_on, builder_.Text(cause)});
  }
  void AddRecording() {
    RecordingInfo info;
    info.start_ns = info.start_realtime_ns = 1'000;
    builder_.events.recording_info.push_back(info);
    builder_.End(11'000);
  }
  const Analysis& Build() {
    AddRecording();
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return *analysis_;
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(RecordedTimeTest, WithoutSwitchesAllIsRecorded) {
  const Model& model = Build().model;
  EXPECT_TRUE(FindPauses(model).empty());
  EXPECT_EQ(RecordedText(model), "");
}

TEST_F(RecordedTimeTest, PausesLieBetweenSwitches) {
  Switch(1'000, false, "--delay");
  Switch(2'000, true, "--delay");
  Switch(5'000, false, "fifo");
  Switch(5'500, false, "fifo");
  Switch(6'000, true, "fifo");
  Switch(6'500, true, "fifo");
  Switch(10'000, false, "fifo");
  const Model& model = Build().model;
  const std::vector<Pause> pauses = FindPauses(model);
  ASSERT_EQ(pauses.size(), 3u);
  EXPECT_EQ(pauses[1].start_ns, 5'000u);
  EXPECT_EQ(pauses[1].end_ns, 6'000u);
  EXPECT_EQ(pauses[2].end_ns, 11'000u);
  EXPECT_EQ(PausedNs(pauses, 0, UINT64_MAX), 3'000u);
  EXPECT_EQ(PausedNs(pauses, 1'500, 5'250), 750u);
  EXPECT_EQ(PausedNs(pauses, 2'000, 5'000), 0u);
  EXPECT_EQ(RecordedText(model), "7 us, 3 pauses (--delay, fifo)");
}

TEST_F(RecordedTimeTest, WindowsAreAPartOfTheTime) {
  Switch(1'000, false, "--every");
  Switch(1'500, true, "--every");
  Switch(2'500, false, "--every");
  Switch(6'500, true, "--every");
  Switch(7'500, false, "--every");
  const Model& model = Build().model;
  EXPECT_EQ(RecordedText(model), "2 us in 2 windows, 20 % of the time (--every)");
  EXPECT_DOUBLE_EQ(WindowScale(model), 5);
  EXPECT_EQ(WindowsNote(model),
            "recorded 2 us in 2 windows, 20 % of the time: totals of the whole time are about 5 "
            "times those shown\n");
}

TEST_F(RecordedTimeTest, AWindowMayBeOpenAtTheEnd) {
  Switch(1'000, false, "--every");
  Switch(2'000, true, "--every");
  Switch(3'000, false, "--every");
  Switch(10'000, true, "--every");
  EXPECT_EQ(RecordedText(Build().model), "2 us in 2 windows, 20 % of the time (--every)");
}

TEST_F(RecordedTimeTest, OtherPausesAreNoWindows) {
  Switch(2'000, false, "--every");
  Switch(3'000, true, "SIGUSR2");
  Switch(5'000, false, "SIGUSR2");
  const Model& model = Build().model;
  EXPECT_EQ(WindowScale(model), 0);
  EXPECT_EQ(WindowsNote(model), "");
}

TEST_F(RecordedTimeTest, BetweenRecordingsNothingIsRecorded) {
  AddRecording();
  Model model = builder_.Build();
  EXPECT_TRUE(BetweenRecordings(model).empty());
  for (const auto& [start_ns, until_ns] :
       {std::pair(1'000, 3'000), std::pair(2'000, 4'000), std::pair(8'000, 11'000)}) {
    MergedCapture& capture = model.captures.emplace_back();
    capture.info.start_ns = start_ns;
    capture.until_ns = until_ns;
  }
  const std::vector<Pause> between = BetweenRecordings(model);
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(between[0].start_ns, 4'000u);
  EXPECT_EQ(between[0].end_ns, 8'000u);
  EXPECT_EQ(RecordedText(model), "6 us, without the time between recordings");
}

TEST_F(RecordedTimeTest, TimesThatMakeNoSenseAreHeldWithin) {
  Switch(0, false, "a");
  Switch(UINT64_MAX, true, "a");
  Switch(5, false, "a");
  const std::vector<Pause> pauses = FindPauses(Build().model);
  ASSERT_EQ(pauses.size(), 1u);  // in order of time it goes off twice, then on
  EXPECT_EQ(PausedNs(pauses, 0, UINT64_MAX), 10'000u);
}

TEST_F(RecordedTimeTest, AGpuIsNotIdleInAPause) {
  builder_.AddKernel(1, 1, 2'000, 3'000, "k");
  builder_.AddKernel(1, 2, 7'000, 8'000, "k");
  Switch(2'500, false, "fifo");
  Switch(6'500, true, "fifo");
  const std::vector<GpuBusy> busy = FindGpuBusy(Build());
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].busy_ns, 2'000u);
  EXPECT_EQ(busy[0].active_ns(), 2'500u);
  const std::vector<IdleGap> gaps = FindAllGaps(*analysis_);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].ns, 500u);
}

}  // namespace
}  // namespace xpu
