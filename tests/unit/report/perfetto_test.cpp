#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "perfetto_trace.pb.h"
#include "report/views/perfetto/perfetto_writer.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

// What the golden test does not see: it reads events, not the packets that they are in.

using perfetto::TracePacket;

std::vector<TracePacket> PacketsOf(const std::string& file) {
  perfetto::Trace blocks;
  EXPECT_TRUE(blocks.ParseFromString(file));
  std::vector<TracePacket> packets;
  for (const TracePacket& block : blocks.packet()) {
    std::string text(size_t{1} << 20, '\0');
    uLongf size = text.size();
    const std::string& deflated = block.compressed_packets();
    EXPECT_EQ(::uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                           reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()),
              Z_OK);
    perfetto::Trace trace;
    EXPECT_TRUE(trace.ParseFromArray(text.data(), static_cast<int>(size)));
    packets.insert(packets.end(), trace.packet().begin(), trace.packet().end());
  }
  return packets;
}

// Times of the sequence's clock, types, tracks.
using Event = std::tuple<uint64_t, uint32_t, uint64_t>;

std::vector<Event> EventsOf(const std::vector<TracePacket>& packets, uint64_t base_ns) {
  std::vector<Event> events;
  uint64_t time_ns = base_ns;
  for (const TracePacket& packet : packets) {
    if (!packet.has_track_event() || packet.has_timestamp_clock_id()) continue;
    time_ns += packet.timestamp();
    events.emplace_back(time_ns, packet.track_event().type(), packet.track_event().track_uuid());
  }
  return events;
}

std::string FileOf(const std::function<void(PerfettoWriter&)>& write,
                   uint64_t most_text_bytes = PerfettoWriter::kMostTextBytes) {
  test::ModelBuilder builder;
  builder.End(5);
  const Analysis analysis(builder.Build());
  return test::Written([&](Output& output) {
    PerfettoWriter writer(analysis, 1'000, output, most_text_bytes);
    write(writer);
    writer.Finish({});
  });
}

constexpr TraceTrack kFirst = {.pid = 7, .tid = 8};
constexpr TraceTrack kOther = {.pid = 7, .tid = 9};
constexpr uint64_t kFirstUuid = 17;
constexpr uint64_t kOtherUuid = 19;
constexpr uint32_t kBegin = 1;
constexpr uint32_t kEnd = 2;
constexpr uint32_t kInstant = 3;

TEST(Perfetto, EndsAreInOrderOfTimeAndInnermostFirst) {
  const auto packets = PacketsOf(FileOf([](PerfettoWriter& writer) {
    const TraceName name = writer.Name("work", "kind");
    writer.Slice(kFirst, name, 1'000, 1'500);
    writer.Slice(kOther, name, 1'100, 1'200);
    writer.Slice(kFirst, name, 1'300, 1'500);
    writer.Slice(kFirst, name, 1'500, 1'500);
    writer.Slice(kFirst, name, 1'500, 1'600);
  }));
  EXPECT_EQ(EventsOf(packets, 1'000), (std::vector<Event>{{1'000, kBegin, kFirstUuid},
                                                          {1'100, kBegin, kOtherUuid},
                                                          {1'200, kEnd, kOtherUuid},
                                                          {1'300, kBegin, kFirstUuid},
                                                          {1'500, kEnd, kFirstUuid},
                                                          {1'500, kEnd, kFirstUuid},
                                                          {1'500, kBegin, kFirstUuid},
                                                          {1'500, kEnd, kFirstUuid},
                                                          {1'500, kBegin, kFirstUuid},
                                                          {1'600, kEnd, kFirstUuid}}));
}

TEST(Perfetto, ATextIsDefinedOnceWhereItIsUsedFirst) {
  const auto packets = PacketsOf(FileOf([](PerfettoWriter& writer) {
    for (const uint64_t start_ns : {2'000, 3'000}) {
      writer.Slice(kFirst, writer.Name("work", "kind"), start_ns, start_ns + 10);
      writer.ArgText("caller", "main");
    }
  }));
  size_t defining = 0;
  for (const TracePacket& packet : packets) {
    if (!packet.has_interned_data()) continue;
    ++defining;
    EXPECT_EQ(packet.track_event().type(), kBegin);
    EXPECT_EQ(packet.interned_data().event_names(0).name(), "work");
    EXPECT_EQ(packet.interned_data().event_categories(0).name(), "kind");
    EXPECT_EQ(packet.interned_data().debug_annotation_names(0).name(), "caller");
    EXPECT_EQ(packet.interned_data().debug_annotation_string_values(0).name(), "main");
  }
  EXPECT_EQ(defining, 1u);
}

TEST(Perfetto, TextsBeyondTheLimitAreWrittenWhereTheyOccur) {
  const auto packets = PacketsOf(FileOf(
      [](PerfettoWriter& writer) {
        writer.Slice(kFirst, writer.Name("work", "kind"), 2'000, 2'010);
        writer.ArgText("caller", std::string(1000, 'x'));
        writer.Arg("bytes", 5);
        writer.Arg("grid", {1, 2, -3});
      },
      0));
  size_t begins = 0;
  for (const TracePacket& packet : packets) {
    EXPECT_FALSE(packet.has_interned_data());
    const perfetto::TrackEvent& event = packet.track_event();
    if (event.type() != kBegin) continue;
    ++begins;
    EXPECT_EQ(event.name(), "work");
    ASSERT_EQ(event.debug_annotations_size(), 3);
    EXPECT_EQ(event.debug_annotations(0).name(), "caller");
    EXPECT_EQ(event.debug_annotations(0).string_value(), std::string(1000, 'x'));
    EXPECT_EQ(event.debug_annotations(1).int_value(), 5);
    EXPECT_EQ(event.debug_annotations(2).name(), "grid");
    EXPECT_EQ(event.debug_annotations(2).array_values(2).int_value(), -3);
  }
  EXPECT_EQ(begins, 1u);
}

TEST(Perfetto, AMarkOfAnEarlierTimeLeavesTheClockAsItIs) {
  const auto packets = PacketsOf(FileOf([](PerfettoWriter& writer) {
    const TraceName name = writer.Name("work", "kind");
    writer.Slice(kFirst, name, 5'000, 5'010);
    writer.Mark("paused", 1'200);
    writer.Slice(kFirst, name, 6'000, 6'010);
  }));
  EXPECT_EQ(EventsOf(packets, 1'000), (std::vector<Event>{{5'000, kBegin, kFirstUuid},
                                                          {5'010, kEnd, kFirstUuid},
                                                          {6'000, kBegin, kFirstUuid},
                                                          {6'010, kEnd, kFirstUuid}}));
  std::vector<uint64_t> marks;
  for (const TracePacket& packet : packets) {
    if (packet.track_event().name() == "paused") marks.push_back(packet.timestamp());
  }
  EXPECT_EQ(marks, std::vector<uint64_t>{1'200});
}

TEST(Perfetto, AnArrowThatWasNotAnnouncedBeginsInAMomentBeforeItsEnd) {
  const auto packets = PacketsOf(FileOf([](PerfettoWriter& writer) {
    const TraceName name = writer.Name("running", "state");
    writer.Slice(kFirst, name, 2'000, 4'000);
    writer.Slice(kOther, name, 3'000, 3'500);
    writer.Arrow("wakeup", 0, kFirst, 3'000, kOther, 3'000);
  }));
  EXPECT_EQ(EventsOf(packets, 1'000), (std::vector<Event>{{2'000, kBegin, kFirstUuid},
                                                          {3'000, kInstant, kFirstUuid},
                                                          {3'000, kBegin, kOtherUuid},
                                                          {3'500, kEnd, kOtherUuid},
                                                          {4'000, kEnd, kFirstUuid}}));
  std::vector<uint64_t> begun;
  std::vector<uint64_t> ended;
  for (const TracePacket& packet : packets) {
    for (const uint64_t flow : packet.track_event().flow_ids()) begun.push_back(flow);
    for (const uint64_t flow : packet.track_event().terminating_flow_ids()) ended.push_back(flow);
  }
  EXPECT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun, ended);
}

TEST(Perfetto, BlocksAreSmall) {
  constexpr uint64_t kSlices = 100'000;
  const std::string file = FileOf([](PerfettoWriter& writer) {
    const TraceName name = writer.Name("work", "kind");
    for (uint64_t i = 0; i < kSlices; ++i) {
      writer.Slice(kFirst, name, 1'000 + i * 100, 1'050 + i * 100);
    }
  });
  perfetto::Trace blocks;
  ASSERT_TRUE(blocks.ParseFromString(file));
  EXPECT_GT(blocks.packet_size(), 10);
  const auto events = EventsOf(PacketsOf(file), 1'000);
  ASSERT_EQ(events.size(), 2 * kSlices);
  EXPECT_EQ(events.back(), Event(1'050 + (kSlices - 1) * 100, kEnd, kFirstUuid));
}

}  // namespace
}  // namespace xpu
