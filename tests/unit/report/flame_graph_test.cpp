#include <cmath>

#include <gtest/gtest.h>

#include "report/query/time_slices.h"
#include "report/views/flame_graph/flame_graph_view.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::kText;

std::string Data(Analysis& analysis, const ViewOptions& options = {}) {
  const CallTree tree = BuildCallTree(analysis, options.tree);
  return test::Written(
      [&](Output& output) { WriteFlameGraphData(analysis, tree, options, output); });
}

std::string Page(Analysis& analysis, const ViewOptions& options = {}) {
  std::string notes;
  return test::Written([&](Output& output) { WriteFlameGraph(analysis, options, output, notes); });
}

size_t CountOf(std::string_view part, std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++count;
  return count;
}

class FlameGraphTest : public testing::Test {
 protected:
  FlameGraphTest() {
    test::ElfBuilder("app")
        .Symbol("main", 0x0, 0x100)
        .Symbol("forward", 0x100, 0x100)
        .WriteTo(directory_ / "app");
    RecordingInfo& info = builder_.events.recording_info.emplace_back();
    info.start_ns = 1'000;
    info.start_realtime_ns = 1'700'000'000'123'456'789;
    info.command_line = builder_.Text("./app </script>");
    info.host_name = builder_.Text("box");
    builder_.Process(ProcessEventKind::kExisting, 1, 100, 100, "app");
    builder_.Map(1, 100, kText, test::ElfBuilder::kTextBytes, test::ElfBuilder::kTextOffset,
                 directory_ / "app", "app");
    builder_.Callback(1, ApiDomain::kRuntime, 211, "cudaLaunchKernel_v7000");
    builder_.Clock(1, 0, {1000});
    builder_.Source(10'000'000);
    builder_.events.recording_end.emplace_back().time_ns = 6'000;
  }

  test::TempDirectory directory_;
  test::ModelBuilder builder_;
};

// The larger of two siblings comes first, whatever came first in the capture.
TEST_F(FlameGraphTest, TheTreeInColumns) {
  const StackId in_forward = builder_.Stack({kText + 0x10, kText + 0x110});
  builder_.Call(1, 1, 211, 2'000, 2'500, 100);
  builder_.Launch(1, 1, 2'001, 100, 100, in_forward);
  builder_.AddKernel(1, 1, 3'000, 7'000, "k");
  builder_.Sample(5'000, 100, 100, builder_.Stack({kText + 0x10}));
  builder_.Sample(5'000, 100, 100, builder_.Stack({kText + 0x110}));
  builder_.Sample(5'000, 100, 100, builder_.Stack({kText + 0x110}));
  Analysis analysis(builder_.Build());
  EXPECT_EQ(Data(analysis),
            "{\"title\":\"./app \\u003c/script>\",\"command\":\"./app \\u003c/script>\","
            "\"host\":\"box\",\"mode\":\"merge\",\"unit\":\"ns\",\"startMs\":1700000000123,"
            "\"durationNs\":5000,\n"
            "\"losses\":[],\n"
            "\"modules\":[\"app\"],\n"
            "\"frames\":{\"name\":[\"app\",\"forward\",\"main\",\"cudaLaunchKernel\","
            "\"[GPU_Kernel]k\"],\n"
            "\"module\":[-1,0,0,-1,-1],\n"
            "\"kind\":[5,0,0,2,3],\n"
            "\"family\":[0,0,0,0,0]},\n"
            "\"families\":[\"\",\"[dispatcher]\",\"[interpreter]\",\"[import]\"],\n"
            "\"strip\":null,\n"
            "\"code\":null,\n"
            "\"nodes\":{\"depth\":[0,1,1,2,3,4],\n"
            "\"frame\":[0,1,2,1,3,4],\n"
            "\"ns\":[0,20000000,10000000,0,0,4000],\n"
            "\"count\":[0,2,1,0,0,1]}}\n");
}

TEST_F(FlameGraphTest, NoNameEndsTheScript) {
  builder_.AddKernel(1, 1, 3'000, 7'000, "</script><!--<b>\"\\\xff\n");
  Analysis analysis(builder_.Build());
  const std::string data = Data(analysis, {.tree = {.mode = TreeMode::kGpu}, .title = "<i>"});
  EXPECT_EQ(data.find('<'), std::string::npos);
  EXPECT_NE(data.find("\"title\":\"\\u003ci>\""), std::string::npos);
  EXPECT_NE(data.find("\"[GPU_Kernel]\\u003c/script>\\u003c!--\\u003cb>"
                      "\\\"\\\\\xef\xbf\xbd\\u000a\""),
            std::string::npos);
  // What ends in the page is what the page itself has.
  const std::string page = Page(analysis);
  EXPECT_EQ(CountOf("</script", page), CountOf("</script", kFlameGraphPage));
  EXPECT_EQ(CountOf("<b>", page), CountOf("<b>", kFlameGraphPage));
}

TEST_F(FlameGraphTest, LossesButNoNotes) {
  builder_.Lose("sample_ring_full", 7);
  builder_.Lose("stack_truncated", 2);
  Analysis analysis(builder_.Build());
  const std::string data = Data(analysis);
  EXPECT_NE(data.find("\"losses\":[{\"severity\":\"lost\",\"count\":7,\"what\":\""),
            std::string::npos);
  EXPECT_NE(data.find("{\"severity\":\"note\",\"count\":2,\"what\":\""), std::string::npos);
}

// An empty capture is a page too.
TEST(FlameGraph, OfNothing) {
  test::ModelBuilder builder;
  Analysis analysis(builder.Build());
  const std::string page = Page(analysis);
  EXPECT_NE(page.find("\"startMs\":null,\"durationNs\":null"), std::string::npos);
  EXPECT_NE(page.find("\"depth\":[],"), std::string::npos);
  EXPECT_EQ(page.find("@DATA@"), std::string::npos);
}

// Steps of 1,000 ns with one kernel each; in the second one is a sample.
TEST_F(FlameGraphTest, AStripOfSteps) {
  const StackId in_forward = builder_.Stack({kText + 0x10, kText + 0x110});
  for (uint32_t i = 0; i < 12; ++i) {
    const uint64_t time_ns = 2'000 + 1'000 * i;
    builder_.Call(1, i + 1, 211, time_ns, time_ns + 100, 100);
    builder_.Launch(1, i + 1, time_ns + 1, 100, 100, in_forward);
    builder_.AddKernel(1, i + 1, time_ns + 1'200, time_ns + 1'300 + i, "k");
  }
  builder_.Sample(3'500, 100, 100, builder_.Stack({kText + 0x10}));
  Analysis analysis(builder_.Build());
  const std::string page = Page(analysis);
  EXPECT_NE(page.find("\"strip\":{\"fromNs\":1000,\"toNs\":12100,\n"
                      "\"lanes\":[{\"name\":\"app/100\",\"unit\":\"ns\",\"top\":1000,\"first\":0,\n"
                      "\"gap\":[1000,0,0,0,0,0,0,0,0,0,0,0],\n"
                      "\"length\":[1000,1000,1000,1000,1000,1000,1000,1000,1000,1000,1000,100],\n"
                      "\"value\":null}],\n"
                      "\"choice\":{\"what\":\"step\",\"text\":\"detected: 1 launch repeated, "
                      "the same in 12 of 12 steps\",\"first\":0,\"each\":1,\n"
                      "\"size\":[1,2,1,1,1,1,1,1,1,1,1,1],\n"),
            std::string::npos)
      << page.substr(page.find("\"strip\":"), 800);
}

// A lane that is only shown, as of a metric.
TEST_F(FlameGraphTest, AStripWithoutAChoice) {
  Analysis analysis(builder_.Build());
  FlameStrip strip{.from_ns = 1'000, .to_ns = 4'000, .lanes = {}};
  strip.lanes.push_back({.name = "<SM>",
                         .unit = "%",
                         .bars = {{1'500, 2'000}, {3'000, 4'000}},
                         .values = {12.5, std::nan("")},
                         .top = 100});
  const CallTree tree = BuildCallTree(analysis, {});
  const std::string data = test::Written(
      [&](Output& output) { WriteFlameGraphData(analysis, tree, {}, output, nullptr, &strip); });
  EXPECT_NE(
      data.find("\"strip\":{\"fromNs\":0,\"toNs\":3000,\n"
                "\"lanes\":[{\"name\":\"\\u003cSM>\",\"unit\":\"%\",\"top\":100,\"first\":null,\n"
                "\"gap\":[500,1000],\n\"length\":[500,1000],\n\"value\":[12.5,0]}],\n"
                "\"choice\":null},\n"),
      std::string::npos)
      << data;
}

TEST(SlicedTimes, NeighborsAreJoinedWhenThereAreTooMany) {
  TimeSlices slices;
  for (uint32_t i = 0; i < 8; ++i) slices.push_back({100 * i, 100 * i + 50, i});
  SlicedTimes sliced({slices}, {}, 8, {.parts = 4, .slices = 100});
  for (uint32_t i = 0; i < 8; ++i) sliced.Add(7, 100 * i + 49, PathId{1}, 10 + i, 1);
  sliced.Add(7, 50, PathId{1}, 1'000, 1);  // between two
  EXPECT_EQ(sliced.each(), 4u);
  const std::vector<SlicedTimes::Part> parts = sliced.Parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].slice, 0u);
  EXPECT_EQ(parts[0].ns, 10u + 11 + 12 + 13);
  EXPECT_EQ(parts[1].slice, 1u);
  EXPECT_EQ(parts[1].count, 4u);
  // Of paths that are too many for one slice nothing is kept.
  for (uint32_t path = 1; path < 10; ++path) sliced.Add(7, 0, PathId{path}, 1, 1);
  EXPECT_TRUE(sliced.Parts().empty());
}

TEST(SlicedTimes, AProcessHasItsOwnSlices) {
  SlicedTimes sliced({{{0, 100, 0}}, {{100, 200, 1}}}, {{7, 0}, {8, 1}}, 2, {});
  for (const uint32_t pid : {7, 8, 9}) sliced.Add(pid, 50, PathId{pid}, 1, 1);
  ASSERT_EQ(sliced.Parts().size(), 2u);
  EXPECT_EQ(sliced.Parts()[1].path, PathId{9});  // of no process with slices: as of the first one
}

TEST(FlameGraph, ThePageNeedsNothingElse) {
  const std::string_view page = kFlameGraphPage;
  EXPECT_EQ(CountOf(kFlameGraphData, page), 1u);
  for (const std::string_view part : {"@STYLE@", "@CODE@", "http:", "https:", "src=", "@import"}) {
    EXPECT_EQ(CountOf(part, page), 0u) << part;
  }
}

// A stack as deep as no other must not end the program's own.
TEST(FlameGraph, ADeepTree) {
  CallTreeLimit limit;
  CallTree tree(limit);
  FrameTable frames;
  PathId path;
  constexpr uint32_t kDepth = 300'000;
  for (uint32_t i = 0; i < kDepth; ++i) path = tree.Child(path, frames.Intern("f"));
  tree.Add(path, 5);
  tree.Child(path, frames.Intern("without time"));
  const std::vector<FlameNode> nodes = InFlameOrder(tree, frames);
  ASSERT_EQ(nodes.size(), kDepth);
  EXPECT_EQ(nodes.back().depth, kDepth - 1);
}

}  // namespace
}  // namespace xpu
