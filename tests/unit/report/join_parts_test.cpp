// Parts of one recording as one capture. That all views are those of one file is held by
// tests/golden/parts.py.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/model/load.h"
#include "report/model/recorded_time.h"
#include "report/query/ledger.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kInstance = 0xa;

// Part `number`: a launch whose kernel is in the next part, a device that each part repeats,
// two lost samples.
LoadedPart Part(uint32_t number, bool is_last, uint64_t recording = 99) {
  test::ModelBuilder builder;
  builder.Text("[lost]");  // has the id that captures keep for it
  builder.Stack({1});
  RecordingInfo info;
  info.start_ns = number * 1000;
  info.recording = recording;
  info.part = number;
  info.host_name = builder.Text("host" + std::to_string(number));
  Device device;
  device.instance = InstanceId{kInstance};
  device.name = builder.Text("GPU");
  Loss& loss = builder.events.losses.emplace_back();
  loss.name = builder.Text("sample_ring_full");
  loss.count = 2;
  builder.Call(kInstance, number, 211, number * 1000, number * 1000 + 10, 10);
  builder.Launch(kInstance, number, number * 1000, 10, 10, builder.Stack({0x10, number, 0x30}));
  if (number > 1) {
    builder.AddKernel(kInstance, number - 1, number * 1000, number * 1000 + 5, "kernel");
  }
  RecordingEnd& end = builder.events.recording_end.emplace_back();
  end.time_ns = number * 1000 + 999;
  end.is_continued = !is_last;
  LoadedPart part;
  if (number == 1) {
    builder.events.recording_info.push_back(info);
    builder.events.devices.push_back(device);
  } else {
    part.restated.recording_info.push_back(info);
    part.restated.devices.push_back(device);
    part.restated.devices.push_back(device);
  }
  part.model = builder.Build();
  part.model.path = "c.000" + std::to_string(number) + ".xpu";
  return part;
}

std::vector<LoadedPart> Parts(std::vector<uint32_t> numbers, uint32_t last) {
  std::vector<LoadedPart> parts;
  for (const uint32_t number : numbers) parts.push_back(Part(number, number == last));
  return parts;
}

uint64_t CountOf(const std::vector<LedgerEntry>& ledger, std::string_view name) {
  for (const LedgerEntry& entry : ledger) {
    if (entry.name == name) return entry.count;
  }
  return 0;
}

TEST(JoinParts, WhatBeganInOneEndsInTheNext) {
  auto joined = JoinParts(Parts({3, 1, 2}, 3));
  ASSERT_TRUE(joined.ok());
  ASSERT_EQ(joined->size(), 1u);
  Analysis analysis(std::move(joined->front()));
  const LoadedEvents& events = analysis.model.events;
  ASSERT_EQ(events.recording_info.size(), 1u);
  EXPECT_EQ(events.recording_info[0].start_ns, 1000u);
  EXPECT_EQ(analysis.model.Text(events.recording_info[0].host_name), "host1");
  EXPECT_EQ(events.devices.size(), 1u);
  ASSERT_EQ(events.recording_end.size(), 1u);
  EXPECT_EQ(events.recording_end[0].time_ns, 3999u);
  EXPECT_EQ(analysis.correlation.counts.launches_matched, 2u);
  EXPECT_EQ(analysis.correlation.counts.launches_pending, 1u);
  EXPECT_EQ(analysis.correlation.counts.kernels_without_launch, 0u);
  const auto ledger = BuildLedger(analysis);
  EXPECT_EQ(CountOf(ledger, "sample_ring_full"), 6u);
  EXPECT_EQ(CountOf(ledger, "file_cut"), 0u);
  EXPECT_EQ(CountOf(ledger, "part_missing"), 0u);
  EXPECT_EQ(PartsText(analysis.model), "parts 1 to 3 of the recording");
  EXPECT_EQ(PartsNote(analysis.model), "");
}

TEST(JoinParts, StacksAreTheSameInAllParts) {
  auto joined = JoinParts(Parts({1, 2}, 2));
  ASSERT_TRUE(joined.ok());
  const Model& model = joined->front();
  ASSERT_EQ(model.events.launch_stacks.size(), 2u);
  const auto frames = [&](StackId id) {
    std::vector<uint64_t> addresses;
    for (; id && !model.tables->IsLost(id); id = model.tables->Node(id).caller) {
      addresses.push_back(model.tables->Node(id).frame.address);
    }
    return addresses;
  };
  std::vector<StackId> stacks;
  for (const LaunchStack launch : model.events.launch_stacks) stacks.push_back(launch.stack);
  EXPECT_EQ(frames(stacks[0]), (std::vector<uint64_t>{0x30, 1, 0x10}));
  EXPECT_EQ(frames(stacks[1]), (std::vector<uint64_t>{0x30, 2, 0x10}));
}

TEST(JoinParts, MissingPartsAreReported) {
  auto joined = JoinParts(Parts({2, 5, 6}, 9));
  ASSERT_TRUE(joined.ok());
  Analysis analysis(std::move(joined->front()));
  EXPECT_EQ(CountOf(BuildLedger(analysis), "part_missing"), 2u);
  EXPECT_EQ(PartsText(analysis.model),
            "parts 2 to 6 of the recording, 2 missing in between; it began in an earlier part and "
            "continues in part 7");
  // Of the first one that is here, and of its time.
  ASSERT_EQ(analysis.model.events.recording_info.size(), 1u);
  EXPECT_EQ(analysis.model.events.recording_info[0].part, 2u);
}

TEST(JoinParts, OnePartAlone) {
  auto joined = JoinParts(Parts({2}, 9));
  ASSERT_TRUE(joined.ok());
  const Model& model = joined->front();
  EXPECT_EQ(model.events.recording_info.size(), 1u);
  EXPECT_EQ(model.events.devices.size(), 1u);
  EXPECT_EQ(
      PartsNote(model),
      "c.0002.xpu: part 2 of the recording; it began in an earlier part and continues in part 3\n");
}

TEST(JoinParts, OnePartTwice) {
  auto joined = JoinParts(Parts({1, 2, 1}, 2));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(joined.error().message, "c.0001.xpu and c.0001.xpu are the same part of one recording");
}

TEST(JoinParts, RecordingsAreNotMixed) {
  std::vector<LoadedPart> parts = Parts({1, 2}, 2);
  parts.push_back(Part(1, true, 100));
  auto joined = JoinParts(std::move(parts));
  ASSERT_TRUE(joined.ok());
  ASSERT_EQ(joined->size(), 2u);
  EXPECT_EQ(joined->at(0).events.launch_stacks.size(), 2u);
  EXPECT_EQ(joined->at(1).events.launch_stacks.size(), 1u);
}

TEST(JoinParts, APartThatWasNeverCompletedIsCut) {
  std::vector<LoadedPart> parts = Parts({1, 2}, 2);
  parts[0].model.events.recording_end.rows().clear();
  auto joined = JoinParts(std::move(parts));
  ASSERT_TRUE(joined.ok());
  Analysis analysis(std::move(joined->front()));
  EXPECT_EQ(CountOf(BuildLedger(analysis), "file_cut"), 1u);
}

}  // namespace
}  // namespace xpu
