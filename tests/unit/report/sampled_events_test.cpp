#include "report/analysis/sampled_events.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

class SampledEventsTest : public testing::Test {
 protected:
  void Source(uint32_t number, std::string_view name, std::string_view unit, uint64_t hz,
              uint64_t period) {
    builder_.events.sample_sources.push_back({.source = number,
                                              .name = builder_.Text(name),
                                              .frequency_hz = hz,
                                              .period = period,
                                              .unit = builder_.Text(unit)});
  }
  void Sample(uint32_t source, uint64_t weight = 0) {
    CpuSample& sample = builder_.Sample(++time_ns_, 1, 1, {});
    sample.source = source;
    sample.weight = weight;
  }
  // Faults of 1, of 10, and by frequency; the clock is last.
  void AddAll() {
    Source(1, "page-faults", "events", 0, 10);
    Source(2, "cycles", "events", 99, 0);
    Source(3, "cpu-clock", "ns", 100, 10'000'000);
    Sample(1);
    Sample(1);
    Sample(2, 70);
    Sample(2, 5);
    Sample(3);
  }

  test::ModelBuilder builder_;
  uint64_t time_ns_ = 0;
};

TEST_F(SampledEventsTest, EachWithItsSamplesAndWeight) {
  AddAll();
  const std::vector<SampledEvent> events = FindSampledEvents(builder_.Build(), {});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].Text(), "page-faults, every 10");
  EXPECT_EQ(events[0].samples, 2u);
  EXPECT_EQ(events[0].weight, 20u);
  EXPECT_EQ(events[1].Text(), "cycles, 99 Hz");
  EXPECT_EQ(events[1].weight, 75u);
  EXPECT_EQ(events[2].Text(), "cpu-clock, 100 Hz");
  EXPECT_EQ(events[2].weight, 10'000'000u);
  EXPECT_TRUE(events[2].is_time);
}

TEST_F(SampledEventsTest, TheClockStaysUnlessAnotherIsNamed) {
  AddAll();
  const Model model = builder_.Build();
  Selection shown;
  ASSERT_TRUE(SelectEvent("", model, shown).ok());
  const Selected samples(model.events.cpu_samples, shown.events.cpu_samples);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples.front().source, 3u);
  EXPECT_TRUE(SamplesCountTime(model, shown));
  EXPECT_EQ(SampleUnitName(model, shown), "ns");
}

TEST_F(SampledEventsTest, TheNamedOneStays) {
  AddAll();
  const Model model = builder_.Build();
  Selection shown;
  ASSERT_TRUE(SelectEvent("cycles", model, shown).ok());
  EXPECT_EQ(shown.events.cpu_samples.Count(model.events.cpu_samples.size()), 2u);
  EXPECT_EQ(shown.events.sample_sources.Count(model.events.sample_sources.size()), 1u);
  EXPECT_FALSE(SamplesCountTime(model, shown));
  EXPECT_EQ(SampleUnitName(model, shown), "cycles");
}

TEST_F(SampledEventsTest, OneThatIsNotThereIsAnError) {
  AddAll();
  const Model model = builder_.Build();
  Selection shown;
  const Status kept = SelectEvent("branches", model, shown);
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(kept.error().message, "--event branches: the capture has no samples of this event");
  EXPECT_EQ(kept.error().hint, "it has samples of page-faults, cycles, cpu-clock");
  EXPECT_EQ(shown.events.cpu_samples.Count(model.events.cpu_samples.size()), 5u);
}

TEST_F(SampledEventsTest, WithoutAClockTheFirstStays) {
  Source(1, "cycles", "events", 99, 0);
  Source(2, "page-faults", "events", 0, 1);
  Sample(1, 3);
  Sample(2);
  const Model model = builder_.Build();
  Selection shown;
  ASSERT_TRUE(SelectEvent("", model, shown).ok());
  EXPECT_EQ(SampleUnitName(model, shown), "cycles");
}

TEST_F(SampledEventsTest, OneClockStaysBesideMoments) {
  AddAll();
  Source(4, "task-clock", "ns", 100, 10'000'000);
  Sample(4);
  const Model model = builder_.Build();
  Selection shown;
  SelectOneClock(model, shown);
  const std::vector<SampledEvent> events = FindSampledEvents(model, shown);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].samples, 2u);
  EXPECT_EQ(events[1].samples, 2u);
  EXPECT_EQ(events[2].name, "cpu-clock");
  EXPECT_EQ(shown.events.cpu_samples.Count(model.events.cpu_samples.size()), 5u);
}

TEST_F(SampledEventsTest, AnEventWithoutSamplesIsReported) {
  Source(1, "page-faults", "events", 0, 10);
  Source(2, "major-faults", "events", 0, 1);
  Analysis analysis(builder_.Build());
  analysis.sampled_events = FindSampledEvents(analysis.model, analysis.shown);
  std::string notes;
  EXPECT_TRUE(test::Folded(analysis, {}, &notes).empty());
  EXPECT_EQ(notes,
            "no stacks to show: no samples were taken of page-faults, every 10, "
            "major-faults, each\n");
}

TEST_F(SampledEventsTest, OfMergedCapturesOneNameIsOneEvent) {
  Source(1, "cycles", "events", 0, 5);
  Source(1048577, "cycles", "events", 0, 7);
  Sample(1);
  Sample(1048577);
  const Model model = builder_.Build();
  Selection shown;
  const std::vector<SampledEvent> events = FindSampledEvents(model, shown);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].weight, 12u);
  ASSERT_TRUE(SelectEvent("cycles", model, shown).ok());
  EXPECT_EQ(shown.events.cpu_samples.Count(model.events.cpu_samples.size()), 2u);
}

// The kernel's periods of such events are far off what came.
TEST_F(SampledEventsTest, SoftwareEventsAtAFrequencyAreSamples) {
  Source(1, "page-faults:u", "events", 99, 0);
  builder_.Process(ProcessEventKind::kExisting, 1, 1, 1, "app");
  Sample(1, 34'000);
  Sample(1, 500);
  Analysis analysis(builder_.Build());
  std::string notes;
  EXPECT_EQ(test::Folded(analysis, {}, &notes), (test::Lines{{"app;[unknown]", 2}}));
  EXPECT_EQ(notes,
            "page-faults:u were sampled at a frequency: the numbers count samples, not events\n  "
            "hint: xpu-record -e page-faults:u -c 1 counts each one\n");
  const auto csv = [&](std::string table) {
    const ViewOptions options{
        .rows = 0, .format = TableFormat::kCsv, .table = std::move(table), .sort = {}};
    return test::Written([&](Output& output) { WriteTop(analysis, options, output); });
  };
  EXPECT_NE(csv("thread_sum").find("CPU (samples)"), std::string::npos);
  EXPECT_NE(csv("thread_sum").find("\n100.0,2,2,"), std::string::npos) << csv("thread_sum");
  EXPECT_NE(csv("cpu_func_sum").find("\n100.0,2,100.0,2,2,"), std::string::npos)
      << csv("cpu_func_sum");
  const std::string summary =
      test::Written([&](Output& output) { WriteSummary(analysis, {}, output); });
  EXPECT_NE(summary.find("hint: samples at a frequency do not count page-faults"),
            std::string::npos)
      << summary;
  EXPECT_EQ(summary.find("34,"), std::string::npos) << summary;
}

TEST_F(SampledEventsTest, WeightsSaturateAndSourcesMayBeUnknown) {
  Source(1, "cycles", "events", 0, 0);
  Source(1, "page-faults", "events", 0, kMost);
  Sample(1, kMost);
  Sample(1, kMost);
  Sample(1);
  Sample(9);
  const Model model = builder_.Build();
  Selection shown;
  const std::vector<SampledEvent> events = FindSampledEvents(model, shown);
  EXPECT_EQ(events[0].weight, kMost);
  EXPECT_EQ(events[0].samples, 3u);
  const SampleWeights weights(model, shown);
  EXPECT_EQ(weights.Of(model.events.cpu_samples[2]), 1u);
  EXPECT_EQ(weights.Of(model.events.cpu_samples[3]), 10'101'010u);  // the default rate, 99 Hz
  EXPECT_EQ(weights.NameOf(model.events.cpu_samples[3]), "[unknown]");
}

TEST_F(SampledEventsTest, FoldedLinesAreInTheUnitOfTheEvent) {
  Source(1, "page-faults", "events", 0, 10);
  const StackId stack = builder_.Stack({0x10});
  builder_.Process(ProcessEventKind::kExisting, 1, 1, 1, "app");
  builder_.Sample(5, 1, 1, stack).source = 1;
  builder_.Sample(6, 1, 1, stack).source = 1;
  Analysis analysis(builder_.Build());
  using test::Lines;
  ViewOptions options;
  EXPECT_EQ(test::Folded(analysis, options), (Lines{{"app;[unknown]", 20}}));
  options.unit = TimeUnit::kSamples;
  EXPECT_EQ(test::Folded(analysis, options), (Lines{{"app;[unknown]", 2}}));
}

}  // namespace
}  // namespace xpu
