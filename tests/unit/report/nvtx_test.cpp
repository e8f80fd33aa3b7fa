#include "report/trace/nvtx.h"

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kNvtxInstance = 7;
constexpr uint32_t kPid = 100;
constexpr uint32_t kThread = 101;

class NvtxTest : public testing::Test {
 protected:
  NvtxTest() {
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.time_ns = 1;
    process.instance = {kNvtxInstance};
    process.pid = kPid;
    process.namespace_pid = kPid;
  }

  NvtxEvent& Add(uint64_t time_ns, NvtxKind kind, std::string_view text = {}, uint32_t domain = 0,
                 uint64_t range = 0) {
    NvtxEvent& event = builder_.events.nvtx_events.emplace_back();
    event.instance = {kNvtxInstance};
    event.time_ns = time_ns;
    event.kind = kind;
    event.tid = kThread;
    event.domain = domain;
    event.range = range;
    event.text = builder_.Text(text);
    return event;
  }

  const NvtxRanges& Ranges() {
    analysis_ = std::make_unique<Analysis>(builder_.Build());
    return analysis_->nvtx;
  }
  std::vector<std::string> NamesAt(uint32_t tid, uint64_t time_ns) const {
    const NvtxRanges& ranges = analysis_->nvtx;
    std::vector<std::string> names;
    for (const uint32_t range : ranges.RangesOf(ranges.At(kPid, tid, time_ns))) {
      names.push_back(ranges.NameOf(ranges.all()[range]));
    }
    return names;
  }

  using Names = std::vector<std::string>;
  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(NvtxTest, PushedRangesNest) {
  Add(10, NvtxKind::kPush, "outer");
  Add(20, NvtxKind::kPush, "inner");
  Add(30, NvtxKind::kPop);
  Add(40, NvtxKind::kMark, "mark");
  Add(50, NvtxKind::kPop);
  const NvtxRanges& ranges = Ranges();
  ASSERT_EQ(ranges.all().size(), 3u);
  EXPECT_EQ(ranges.all()[0].start_ns, 10u);
  EXPECT_EQ(ranges.all()[0].end_ns, 50u);
  EXPECT_EQ(ranges.all()[1].start_ns, 20u);
  EXPECT_EQ(ranges.all()[1].end_ns, 30u);
  EXPECT_EQ(ranges.all()[2].style, NvtxStyle::kMark);
  EXPECT_FALSE(ranges.all()[0].is_open);
  EXPECT_EQ(NamesAt(kThread, 9), Names());
  EXPECT_EQ(NamesAt(kThread, 10), (Names{":outer"}));
  EXPECT_EQ(NamesAt(kThread, 25), (Names{":outer", ":inner"}));
  EXPECT_EQ(NamesAt(kThread, 30), (Names{":outer"}));
  EXPECT_EQ(NamesAt(kThread, 50), Names());
  EXPECT_EQ(NamesAt(kThread + 1, 25), Names());
}

TEST_F(NvtxTest, APopEndsTheInnermostOfItsDomain) {
  Add(1, NvtxKind::kDomain, "library", 3);
  Add(10, NvtxKind::kPush, "own");
  Add(20, NvtxKind::kPush, "theirs", 3);
  Add(30, NvtxKind::kPop);
  Add(40, NvtxKind::kPop, {}, 3);
  Add(50, NvtxKind::kPop, {}, 3);
  const NvtxRanges& ranges = Ranges();
  EXPECT_EQ(ranges.all()[0].end_ns, 30u);
  EXPECT_EQ(ranges.all()[1].end_ns, 40u);
  EXPECT_EQ(ranges.unmatched_ends(), 1u);
  EXPECT_EQ(NamesAt(kThread, 25), (Names{":own", "library:theirs"}));
  EXPECT_EQ(NamesAt(kThread, 35), (Names{"library:theirs"}));
}

TEST_F(NvtxTest, StartedRangesAreOfTheProcess) {
  Add(10, NvtxKind::kStart, "a", 0, 1);
  Add(20, NvtxKind::kStart, "b", 0, 2);
  Add(30, NvtxKind::kEnd, {}, 0, 1).tid = kThread + 5;
  Add(35, NvtxKind::kEnd, {}, 0, 9);
  Add(40, NvtxKind::kEnd, {}, 0, 2);
  const NvtxRanges& ranges = Ranges();
  EXPECT_EQ(ranges.all()[0].end_ns, 30u);
  EXPECT_EQ(ranges.all()[1].end_ns, 40u);
  EXPECT_EQ(ranges.unmatched_ends(), 1u);
  EXPECT_EQ(NamesAt(kThread + 9, 25), (Names{":a", ":b"}));
  EXPECT_EQ(NamesAt(kThread + 9, 35), (Names{":b"}));
}

TEST_F(NvtxTest, WhatIsNotEndedLastsAsLongAsItsThread) {
  builder_.Process(ProcessEventKind::kExec, 5, kPid, kPid, "before");
  builder_.Process(ProcessEventKind::kExit, 60, kPid, kThread);
  builder_.Process(ProcessEventKind::kExec, 80, kPid, kPid, "another program");
  Add(10, NvtxKind::kPush, "of the thread");
  Add(20, NvtxKind::kStart, "of the process", 0, 1);
  Add(30, NvtxKind::kPush, "of another thread").tid = kThread + 1;
  RecordingEnd& end = builder_.events.recording_end.emplace_back();
  end.time_ns = 500;
  const NvtxRanges& ranges = Ranges();
  EXPECT_EQ(ranges.all()[0].end_ns, 60u);
  EXPECT_EQ(ranges.all()[1].end_ns, 80u);
  EXPECT_EQ(ranges.all()[2].end_ns, 80u);
  EXPECT_EQ(NamesAt(kThread, 59), (Names{":of the process", ":of the thread"}));
  EXPECT_EQ(NamesAt(kThread, 60), (Names{":of the process"}));
  EXPECT_EQ(NamesAt(kThread, 80), Names());
}

TEST_F(NvtxTest, WithoutProcessesItLastsUntilTheLastEvent) {
  Add(10, NvtxKind::kPush, "open");
  Add(90, NvtxKind::kMark, "last");
  const NvtxRanges& ranges = Ranges();
  EXPECT_TRUE(ranges.all()[0].is_open);
  EXPECT_EQ(ranges.all()[0].end_ns, 90u);
  EXPECT_EQ(NamesAt(kThread, 89), (Names{":open"}));
}

TEST_F(NvtxTest, TheFirstThreadOfAnotherPidNamespace) {
  builder_.events.gpu_processes.back().namespace_pid = 1;
  Add(10, NvtxKind::kPush, "in a container").tid = 1;
  Add(90, NvtxKind::kMark, "last");
  Ranges();
  EXPECT_EQ(NamesAt(kPid, 20), (Names{":in a container"}));
}

TEST_F(NvtxTest, NamesAndNumbers) {
  Add(1, NvtxKind::kCategory, "layers").category = 4;
  NvtxEvent& range = Add(10, NvtxKind::kPush, "x", 9);
  range.category = 4;
  range.payload_type = NvtxPayload::kInt32;
  range.payload = 0xfffffffe;
  NvtxEvent& mark = Add(20, NvtxKind::kMark, "y");
  mark.category = 4;
  mark.payload_type = NvtxPayload::kDouble;
  mark.payload = 0x3ff8000000000000;
  const NvtxRanges& ranges = Ranges();
  EXPECT_EQ(ranges.NameOf(ranges.all()[0]), "[domain 9]:x");
  EXPECT_EQ(ranges.LabelOf(ranges.all()[1]), "y");
  EXPECT_EQ(ranges.CategoryOf(*ranges.all()[0].event), "4");  // of another domain
  EXPECT_EQ(ranges.CategoryOf(*ranges.all()[1].event), "layers");
  EXPECT_EQ(PayloadText(*ranges.all()[0].event), "-2");
  EXPECT_EQ(PayloadText(*ranges.all()[1].event), "1.5");
}

TEST_F(NvtxTest, ManyOpenRangesEndInReasonableTime) {
  constexpr uint64_t kManyRanges = 20'000;
  for (uint64_t i = 0; i < kManyRanges; ++i) Add(i, NvtxKind::kStart, "s", 0, i);
  for (uint64_t i = 0; i < kManyRanges; ++i) Add(kManyRanges + i, NvtxKind::kEnd, {}, 0, i);
  const NvtxRanges& ranges = Ranges();
  EXPECT_EQ(ranges.unmatched_ends(), 0u);
  EXPECT_EQ(ranges.all().back().end_ns, 2 * kManyRanges - 1);
}

TEST_F(NvtxTest, FilterKeepsHitsOfProbesInTheRange) {
  Add(10, NvtxKind::kPush, "step");
  Add(20, NvtxKind::kPop);
  Probe& probe = builder_.events.probes.emplace_back();
  probe.probe = 1;
  probe.function = builder_.Text("exp");
  for (const uint64_t time_ns : {5, 15, 25}) {
    ProbeHit& hit = builder_.events.probe_hits.emplace_back();
    hit.probe = 1;
    hit.time_ns = time_ns;
    hit.pid = kPid;
    hit.tid = kThread;
  }
  Ranges();
  FilterOptions options;
  options.nvtx = "step";
  analysis_->shown = SelectPart(options, *analysis_).value();
  ASSERT_EQ(analysis_->ProbeHits().size(), 1u);
  EXPECT_EQ(analysis_->ProbeHits().front().time_ns, 15u);
}

}  // namespace
}  // namespace xpu
