// The capture is untrusted: whatever its events say, no view may crash, hang or run out of memory.
#include <filesystem>
#include <random>
#include <type_traits>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "format/events.h"
#include "format/writer.h"
#include "report/analysis/filter.h"
#include "report/model/load.h"
#include "report/query/ledger.h"
#include "report/query/statistics.h"
#include "report/views/tables/top_tables.h"
#include "tests/unit/report/hostile_captures.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

class RandomFields {
 public:
  RandomFields(std::mt19937_64& random, test::ModelBuilder& builder)
      : random_(random), builder_(builder) {}

  void operator()(std::string_view, bool& value) { value = Pick(2) == 1; }
  void operator()(std::string_view, StringId& value) {
    constexpr std::string_view kTexts[] = {
        "",       "app", "\xff\n;\"", "cudaLaunchKernel_v7000", "ns", "/proc/self/exe", "[vdso]",
        "//anon", "/",   " 7",        "\xe8\6\xf8\xef\x7f"};
    value = Pick(20) == 0 ? StringId{static_cast<uint32_t>(random_())}
                          : builder_.Text(kTexts[Pick(std::size(kTexts))]);
  }
  void operator()(std::string_view, StackId& value) {
    if (Pick(20) == 0) {
      value = StackId{static_cast<uint32_t>(random_())};
    } else if (Pick(3) == 0) {
      value = builder_.PythonStack({Python(), Python(), Python()});
    } else {
      value = builder_.Stack({Number(), Number() | uint64_t{Pick(2)} << 63, Number()});
    }
  }
  void operator()(std::string_view, InstanceId& value) { value.value = Pick(3); }
  template <typename Value>
  requires(std::is_enum_v<Value>) void operator()(std::string_view, Value& value) {
    value = static_cast<Value>(Pick(7));
  }
  template <typename Value>
  requires(std::is_integral_v<Value>) void operator()(std::string_view, Value& value) {
    value = static_cast<Value>(Number());
  }

 private:
  size_t Pick(size_t bound) { return static_cast<size_t>(random_() % bound); }
  // Small numbers meet each other, large ones overflow.
  uint64_t Number() {
    switch (Pick(4)) {
      case 0:
        return Pick(4);
      case 1:
        return Pick(100'000);
      case 2:
        return ~uint64_t{0} - Pick(4);
      default:
        return random_();
    }
  }
  PythonFrame Python() {
    return {.code = static_cast<uint32_t>(Number()),
            .is_entry = Pick(2) == 1,
            .offset = static_cast<uint32_t>(Number())};
  }
  std::mt19937_64& random_;
  test::ModelBuilder& builder_;
};

template <typename Event>
void Fill(std::vector<Event>& list, size_t count, RandomFields fields) {
  list.resize(count);
  for (Event& event : list) VisitFields(event, fields);
}

class HostileTest : public testing::TestWithParam<uint64_t> {
 protected:
  static Model AnyEvents() {
    std::mt19937_64 random(GetParam());
    test::ModelBuilder builder;
    VisitLists(builder.events, [&](std::string_view, auto& list) {
      Fill(list, 1 + random() % 60, RandomFields(random, builder));
    });
    return builder.Build();
  }
};

TEST_P(HostileTest, EveryViewOfAnyEvents) {
  Analysis analysis(AnyEvents());
  for (const TreeMode mode :
       {TreeMode::kCpuAndGpu, TreeMode::kGpu, TreeMode::kCpu, TreeMode::kOff, TreeMode::kWall}) {
    for (const TimeUnit unit :
         {TimeUnit::kNanoseconds, TimeUnit::kMicroseconds, TimeUnit::kSamples}) {
      for (const GraphStacks stacks :
           {GraphStacks::kBoth, GraphStacks::kLaunch, GraphStacks::kCreation}) {
        test::Folded(analysis, {.tree = {.mode = mode,
                                         .paths = {.graph_stacks = stacks},
                                         .device_tags = unit == TimeUnit::kNanoseconds},
                                .unit = unit});
      }
    }
  }
  for (const GroupBy by :
       {GroupBy::kThread, GroupBy::kProcess, GroupBy::kStream, GroupBy::kDevice}) {
    test::Folded(analysis, {.tree = {.by = by}, .reverse = true});
  }
  std::string notes;
  for (const TableFormat format : {TableFormat::kTable, TableFormat::kCsv, TableFormat::kJson}) {
    for (const TableKind& kind : TableKinds()) {
      const std::string sort = format == TableFormat::kCsv ? kind.columns.back().name : "";
      test::Written([&](Output& output) {
        WriteTop(analysis,
                 {.rows = 0, .format = format, .table = std::string(kind.name), .sort = sort},
                 output);
      });
    }
  }
  const auto written = test::Written([&](Output& output) {
    WriteSummary(analysis, {}, output);
    WriteChromeTrace(analysis, {.tree = {.kernel_names = KernelNames::kMangled}}, output, notes);
    WriteFlameGraph(analysis, {}, output, notes);
    WriteDiff({{{&analysis}}, {{&analysis}}}, {}, output, notes);
    WriteScript(analysis, {}, output);
    WriteDump(analysis, output);
  });
  EXPECT_FALSE(written.empty());
  const Correlation::Counts& counts = analysis.correlation.counts;
  EXPECT_EQ(counts.launches_seen,
            counts.launches_matched + counts.launches_pending + counts.launches_lost);
}

TEST_P(HostileTest, EveryWayToCorrelateSampled) {
  for (const CorrelateBy by : {CorrelateBy::kId, CorrelateBy::kNesting, CorrelateBy::kTime}) {
    Analysis analysis(AnyEvents(), {.places = {.lines = true}}, {.by = by});
    for (const uint64_t rate : {1, 3, 1'000'000}) {
      SelectOneOf(rate, analysis.trace(), analysis.shown);
      test::Folded(analysis, {.tree = {}, .unit = TimeUnit::kNanoseconds});
      std::string notes;
      const auto written = test::Written([&](Output& output) {
        WriteSummary(analysis, {}, output);
        WriteTop(analysis, {.sample_rate = rate, .rows = 0}, output);
        WriteChromeTrace(analysis, {}, output, notes);
        WriteScript(analysis, {}, output);
      });
      EXPECT_FALSE(written.empty());
    }
  }
}

// A sanitizer's own memory would be counted, too.
#ifndef XPU_SANITIZED
uint64_t PeakBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

// Equal events take next to nothing in the file, and 200 bytes each in memory.
TEST(HostileCapture, ABombIsReadUpToItsBound) {
  constexpr uint64_t kEvents = 3'000'000;
  const test::TempDirectory directory;
  const std::string path = directory / "bomb.xpu";
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  auto writer = CaptureWriter::Create(std::move(fd), path);
  ASSERT_TRUE(writer.ok());
  for (uint64_t i = 0; i < kEvents; ++i) ASSERT_TRUE(writer->Write(Kernel{}).ok());
  ASSERT_TRUE(writer->Close().ok());
  const uint64_t file_bytes = std::filesystem::file_size(path);
  ASSERT_LT(file_bytes, kEvents / 10);

  const uint64_t before = PeakBytes();
  auto model = LoadCapture(path);
  ASSERT_TRUE(model.ok());
  const uint64_t read = model->events.kernels.size();
  EXPECT_GT(read, uint64_t{2'000'000});
  EXPECT_LE(read, (uint64_t{2} << 20) + 4 * file_bytes);
  EXPECT_EQ(model->problems.events_lost + read, kEvents);
  EXPECT_LT(PeakBytes() - before, (uint64_t{700} << 20) + 1500 * file_bytes);
}
#endif

Result<Model> LoadHostile(std::string_view name, uint32_t events,
                          const test::TempDirectory& directory) {
  for (const test::HostileCapture& capture : test::HostileCaptures()) {
    if (capture.name != name) continue;
    const std::string path = directory / "hostile.xpu";
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    auto writer = CaptureWriter::Create(std::move(fd), path);
    if (!writer.ok()) return writer.error();
    XPU_RETURN_IF_ERROR(capture.write(*writer, events));
    XPU_RETURN_IF_ERROR(writer->Close());
    return LoadCapture(path);
  }
  return Error{ErrorKind::kNotFound, std::string(name), {}};
}

// What is looked up is what differs, not what happens: each event has a stack of 2048 frames.
TEST(HostileCapture, TheWorkGrowsWithWhatDiffers) {
#ifdef XPU_SANITIZED
  constexpr uint32_t kEvents = 2'000;
#else
  constexpr uint32_t kEvents = 20'000;
#endif
  const struct {
    std::string_view name;
    uint64_t most_work;
  } cases[] = {
      {"one_deep_stack", 100'000},
      // One mapping more for each of the 20 spans of time.
      {"deep_stack_over_moving_mappings", 2'000'000},
      {"many_leaves_of_a_deep_stack", 400'000},
      {"hits_with_a_deep_stack", 100'000},
  };
  const test::TempDirectory directory;
  for (const auto& hostile : cases) {
    Result<Model> model = LoadHostile(hostile.name, kEvents, directory);
    ASSERT_TRUE(model.ok()) << hostile.name;
    Analysis analysis(std::move(model).value());
    for (const TreeMode mode : {TreeMode::kCpuAndGpu, TreeMode::kProbe}) {
      const CallTree tree = BuildCallTree(analysis, {.mode = mode});
      FunctionTimes(tree, analysis.frames);
    }
    EXPECT_LE(analysis.resolver.work(), hostile.most_work) << hostile.name;
    EXPECT_EQ(analysis.call_trees.stacks_left_out, 0u) << hostile.name;
  }
}

// Nothing is the same for two events: the report ends, and says what it left out.
TEST(HostileCapture, TheWorkEndsAtItsLimit) {
  constexpr uint64_t kMostWork = 1'000'000;
  const test::TempDirectory directory;
  Result<Model> model = LoadHostile("many_mappings_of_one_place", 20'000, directory);
  ASSERT_TRUE(model.ok());
  Analysis analysis(std::move(model).value());
  analysis.call_trees.max_frames = kMostWork;
  const uint64_t samples = analysis.model.events.cpu_samples.size();
  const CallTree tree = BuildCallTree(analysis, {.mode = TreeMode::kCpu});
  uint64_t shown = 0;
  for (const CallTree::Node& node : tree.nodes()) shown += node.self_count;
  EXPECT_EQ(shown, samples);
  EXPECT_GT(analysis.call_trees.stacks_left_out, 0u);
  // The stack at which the limit was met is finished: 2048 frames, each among 4096 mappings.
  EXPECT_LE(analysis.resolver.work(), 3 * kMostWork + 3 * 2048 * 4096);
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  EXPECT_TRUE(std::any_of(ledger.begin(), ledger.end(),
                          [](const LedgerEntry& entry) { return entry.name == "call_tree_full"; }));
}

// Each refers to a text of a mebibyte, of which a frame, a thread, a range would have one each.
TEST(HostileCapture, HugeNamesAreCut) {
  const test::TempDirectory directory;
  Result<Model> model = LoadHostile("huge_name", 4'000, directory);
  ASSERT_TRUE(model.ok());
  Analysis analysis(std::move(model).value());
  const CallTree tree = BuildCallTree(analysis, {.mode = TreeMode::kCpuAndGpu});
  EXPECT_GT(tree.nodes().size(), 3u);
  for (const CallTree::Node& node : tree.nodes()) {
    ASSERT_LE(analysis.frames[node.frame].name.size(),
              2 * Model::kLongestText + 32);  // file and function
  }
}

// A small file gets a small tree.
TEST(HostileCapture, TheTreeGrowsWithTheFile) {
  const test::TempDirectory directory;
  Result<Model> model = LoadHostile("many_processes", 3'000, directory);
  ASSERT_TRUE(model.ok());
  const uint64_t file_bytes = model->file_bytes;
  ASSERT_GT(file_bytes, 0u);
  const Analysis analysis(std::move(model).value());
  EXPECT_EQ(analysis.call_trees.max_nodes, (uint64_t{1} << 18) + 2 * file_bytes);
}

// fuzz_report goes on from here.
INSTANTIATE_TEST_SUITE_P(Seeds, HostileTest, testing::Range<uint64_t>(0, 12));

}  // namespace
}  // namespace xpu
