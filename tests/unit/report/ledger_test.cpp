#include "report/query/ledger.h"

#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "report/analysis/filter.h"
#include "report/query/call_tree_builder.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

std::map<std::string, uint64_t> Counts(const std::vector<LedgerEntry>& ledger) {
  std::map<std::string, uint64_t> counts;
  for (const LedgerEntry& entry : ledger) counts[entry.name] = entry.count;
  return counts;
}

TEST(Ledger, NothingLostIsEmpty) {
  test::ModelBuilder builder;
  builder.End(5);
  const Analysis analysis(builder.Build());
  EXPECT_TRUE(BuildLedger(analysis).empty());
  EXPECT_EQ(LedgerText(BuildLedger(analysis)), "");
}

TEST(Ledger, RecordedLossesAreSummedByName) {
  test::ModelBuilder builder;
  builder.End(5);
  builder.Lose("stack_truncated", 2);
  builder.Lose("cupti_dropped", 3, "x");
  builder.Lose("cupti_dropped", 4, "y");
  builder.Lose("cupti_dropped", 1, "x");
  builder.Lose("write_failed", 0);
  const Analysis analysis(builder.Build());
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  ASSERT_EQ(ledger.size(), 2u);
  EXPECT_EQ(ledger[0].name, "cupti_dropped");  // the worst first
  EXPECT_EQ(ledger[0].count, 8u);
  EXPECT_EQ(ledger[0].details, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(ledger[1].name, "stack_truncated");
}

TEST(Ledger, StacksThatWereNotAskedForAreNotMissing) {
  using Source = LaunchStackSource;
  for (const Source source : {Source::kUnknown, Source::kNone, Source::kMarker}) {
    test::ModelBuilder builder;
    builder.End(5);
    RecordingInfo info;
    info.launch_stacks = source;
    builder.events.recording_info.push_back(info);
    builder.Call(1, 1, 211, 1'000, 1'700, 100);
    builder.AddKernel(1, 1, 2'000, 2'100, "k");
    const Analysis analysis(builder.Build());
    EXPECT_EQ(Counts(BuildLedger(analysis)).count("launch_stack_missing"),
              source == Source::kNone ? 0u : 1u);
  }
}

// The recorder counts what it knows of; the same calls are in the capture, without a stack.
TEST(Ledger, MissingStacksAreCountedOnce) {
  test::ModelBuilder builder;
  builder.End(5'000'000);
  for (uint32_t id = 1; id <= 3; ++id) builder.Call(1, id, 211, 1'000 * id, 1'000 * id + 700, 100);
  builder.Call(2, 1, 211, 9'000, 9'700, 200);
  const auto lose = [&](const char* name, uint64_t count, uint64_t instance) {
    builder.Lose(name, count).instance = {instance};
  };
  lose("launch_stack_missing", 2, 1);
  lose("launch_stack_missing", 4, 3);  // of calls that are not in the capture
  lose("launch_ring_full", 1, 1);
  const Analysis analysis(builder.Build());
  std::map<std::string, uint64_t> counts = Counts(BuildLedger(analysis));
  EXPECT_EQ(counts.at("launch_stack_missing"), 2u + 4 + 1);
  EXPECT_EQ(counts.at("launch_ring_full"), 1u);
  const std::string text = LedgerText(BuildLedger(analysis));
  EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
}

// In every recording some stacks are incomplete: a line under each view would hide what is lost.
TEST(Ledger, WhatIsAboutStacksTakesOneLine) {
  test::ModelBuilder builder;
  builder.End(5);
  const auto lose = [&](LossKind kind, uint64_t count) { builder.Lose(InfoOf(kind).name, count); };
  lose(LossKind::kStackNoRule, 2000);
  lose(LossKind::kCallLost, 1);
  lose(LossKind::kStackCut, 1);
  builder.Lose("python_stack_doubtful", 3);
  const Analysis analysis(builder.Build());
  const std::string text = LedgerText(BuildLedger(analysis));
  EXPECT_TRUE(text.starts_with("1 ")) << text;
  EXPECT_NE(text.find("(call_lost)\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(
      "\nincomplete stacks: 3 python_stack_doubtful, 2,000 stack_no_rule, 1 stack_truncated; "
      "the summary has details\n"))
      << text;
}

// They would be the same list under each view; what is about lines is of a view that shows them.
TEST(Ledger, FilesWithoutNamesTakeOneLine) {
  const auto entry = [](const char* name, uint64_t count) {
    LedgerEntry made;
    made.name = name;
    made.severity = Severity::kPartial;
    made.count = count;
    made.what = "files";
    made.details = {"/a: is not the recorded file"};
    return made;
  };
  EXPECT_EQ(
      LedgerText({entry("file_mismatch", 2), entry("file_no_lines", 1), entry("file_missing", 3),
                  entry("stack_truncated", 4)}),
      "1 files (file_no_lines)\n  /a: is not the recorded file\nnames: 2 files "
      "(file_mismatch): /a: is not the recorded file\nnames: 3 files (file_missing): /a: is "
      "not the recorded file\nincomplete stacks: 4 stack_truncated; the summary has details\n");
}

TEST(Ledger, OneIsSingular) {
  test::ModelBuilder builder;
  builder.End(5);
  builder.Lose("process_not_reached", 1);
  builder.Lose("{a|b}", 1);
  const Analysis analysis(builder.Build());
  const std::string text = LedgerText(BuildLedger(analysis));
  EXPECT_EQ(text.find("1 CUDA process that could not deliver its records (process_not_reached)"),
            0u)
      << text;
  EXPECT_NE(text.find("1 loss of kind {a|b} ({a|b})"), std::string::npos) << text;
}

// A part. The call 10 was still running when 11 had ended, in the part before; the kernels of 5 and
// 11 have theirs there, that of 15 lost it. 13 and 20 have no kernel.
std::map<std::string, uint64_t> CountsOfPart(PartRange parts) {
  test::ModelBuilder builder;
  builder.End(5'000'000);
  builder.Clock(1, 0, {1'000});
  const StackId stack = builder.Stack({0x10});
  const auto call = [&](uint32_t id, uint64_t start_ns, uint64_t end_ns) {
    builder.Call(1, id, 211, start_ns, end_ns, 100);
    builder.Launch(1, id, start_ns, 100, 100, stack);
  };
  call(10, 1'000, 1'500);
  call(12, 1'200, 1'300);
  call(13, 2'000, 2'100);
  call(16, 3'000, 3'100);
  call(20, 4'000, 4'100);
  uint64_t start_ns = 10'000;
  for (const uint32_t id : {5, 10, 11, 12, 15, 16}) {
    builder.AddKernel(1, id, start_ns, start_ns + 100, "k");
    start_ns += 200;
  }
  Model model = builder.Build();
  model.parts = parts;
  const Analysis analysis(std::move(model));
  std::map<std::string, uint64_t> counts = Counts(BuildLedger(analysis));
  for (const LedgerEntry& entry : BuildLedger(analysis)) {
    EXPECT_EQ(LosesData(entry), entry.name != "other_part") << entry.name;
  }
  return counts;
}

TEST(Ledger, WhatAnotherPartHasIsNotLost) {
  using Expected = std::map<std::string, uint64_t>;
  EXPECT_EQ(CountsOfPart({}), (Expected{{"kernel_without_launch", 3}, {"launch_pending", 2}}));
  EXPECT_EQ(CountsOfPart({.first = 1, .last = 1}),
            (Expected{{"kernel_without_launch", 3}, {"launch_pending", 2}}));
  EXPECT_EQ(CountsOfPart({.first = 2, .last = 2}),
            (Expected{{"kernel_without_launch", 1}, {"launch_pending", 2}, {"other_part", 2}}));
  EXPECT_EQ(CountsOfPart({.first = 1, .last = 1, .is_continued = true}),
            (Expected{{"kernel_without_launch", 3}, {"other_part", 2}}));
  EXPECT_EQ(CountsOfPart({.first = 2, .last = 2, .is_continued = true}),
            (Expected{{"kernel_without_launch", 1}, {"other_part", 4}}));
}

TEST(Ledger, ADamagedBlockMayHaveHeldTheEnd) {
  test::ModelBuilder builder;  // without an end
  builder.problems = {.blocks_read = 1, .blocks_damaged = 1};
  const Analysis analysis(builder.Build());
  EXPECT_EQ(Counts(BuildLedger(analysis)).count("file_cut"), 0u);
  EXPECT_EQ(Counts(BuildLedger(analysis)).at("block_damaged"), 1u);
}

TEST(Ledger, ProblemsOfTheFile) {
  test::ModelBuilder builder;  // without an end
  builder.problems = {.blocks_read = 9,
                      .blocks_damaged = 2,
                      .bytes_skipped = 100,
                      .header_damaged = true,
                      .cut = true,
                      .captures_follow = true,
                      .unknown_events = 4,
                      .references_lost = 3};
  const Analysis analysis(builder.Build());
  const std::map<std::string, uint64_t> expected = {{"block_damaged", 2},  {"capture_appended", 1},
                                                    {"file_cut", 1},       {"header_damaged", 1},
                                                    {"reference_lost", 3}, {"unknown_events", 4}};
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  EXPECT_EQ(Counts(ledger), expected);
  for (const LedgerEntry& entry : ledger) {
    EXPECT_EQ(LosesData(entry), entry.name != "unknown_events") << entry.name;
  }
}

LedgerEntry EntryOf(const Analysis& analysis, std::string_view name) {
  for (LedgerEntry& entry : BuildLedger(analysis)) {
    if (entry.name == name) return std::move(entry);
  }
  ADD_FAILURE() << name;
  return {};
}

// A recorder that was killed after two seconds and a half.
test::ModelBuilder CutRecording(SymbolDetail symbols) {
  test::ModelBuilder builder;
  RecordingInfo& info = builder.events.recording_info.emplace_back();
  info.start_ns = 1'000'000'000;
  info.symbols = symbols;
  builder.Sample(1'200'000'000, 1, 1, builder.Stack({1}));
  builder.Process(ProcessEventKind::kExit, 3'500'000'000, 7, 7);
  builder.Sample(3'400'000'000, 1, 1, builder.Stack({1}));
  return builder;
}

TEST(Ledger, ACutCaptureSaysHowMuchItHoldsAndThatItHasNoNames) {
  const Analysis analysis(CutRecording(SymbolDetail::kNames).Build());
  const LedgerEntry cut = EntryOf(analysis, "file_cut");
  EXPECT_EQ(cut.count, 1u);
  EXPECT_EQ(cut.details,
            (std::vector<std::string>{"it contains the first 2.5 s of the recording",
                                      "it has no names of functions, which are written last"}));
  EXPECT_NE(cut.advice.find("--symfs"), std::string::npos);
}

TEST(Ledger, ACutCaptureOfAPartHoldsAsMuch) {
  Analysis analysis(CutRecording(SymbolDetail::kNone).Build());
  FilterOptions filter;
  filter.time.end_ns = 500'000'000;
  analysis.shown = SelectPart(filter, analysis).value();
  const LedgerEntry cut = EntryOf(analysis, "file_cut");
  EXPECT_EQ(cut.details, std::vector<std::string>{"it contains the first 2.5 s of the recording"});
  EXPECT_EQ(cut.advice.find("--symfs"), std::string::npos);  // none were wanted
}

TEST(Ledger, NamesThatWereWrittenBeforeTheCutAreThere) {
  test::ModelBuilder builder = CutRecording(SymbolDetail::kNames);
  SymbolSlice& slice = builder.events.symbol_slices.emplace_back();
  slice.path = builder.Text("/a");
  slice.part_count = 1;
  const Analysis analysis(builder.Build());
  EXPECT_EQ(EntryOf(analysis, "file_cut").details,
            std::vector<std::string>{"it contains the first 2.5 s of the recording"});
}

TEST(Ledger, AFullCallTree) {
  test::ModelBuilder builder;
  builder.Process(ProcessEventKind::kExisting, 1, 5, 5, "app");
  builder.Source(10);
  for (uint64_t i = 1; i <= 4; ++i) {
    builder.Map(1, 5, 0x1000 * i, 0x1000, 0, "/file" + std::to_string(i));
    builder.Sample(1 + i, 5, 5, builder.Stack({0x1000 * i}));
  }
  builder.End(9);
  Analysis analysis(builder.Build());
  analysis.call_trees.max_nodes = 3;
  const CallTree tree = BuildCallTree(analysis, {.mode = TreeMode::kCpu});
  uint64_t ns = 0;
  for (const CallTree::Node& node : tree.nodes()) ns += node.self_ns;
  EXPECT_EQ(ns, 40u);
  const LedgerEntry full = EntryOf(analysis, "call_tree_full");
  EXPECT_EQ(full.count, 2u);  // of "app" and four files, three fit
  EXPECT_EQ(full.details,
            std::vector<std::string>{"more than 3 call paths, or 64 NVTX ranges around one"});
  EXPECT_TRUE(LosesData(full));
}

// A small file refers to a large text from many places.
TEST(Ledger, SourcePartsBeyondTheirLimit) {
  test::ModelBuilder builder;
  const StringId text = builder.Text(std::string(60'000, 'x'));
  for (uint32_t line = 1; line <= 20; ++line) {
    builder.events.source_texts.push_back(
        {.path = builder.Text("/app/a.py"), .first_line = line, .text = text});
  }
  const Analysis analysis(builder.Build());
  const LedgerEntry full = EntryOf(analysis, "source_text_full");
  EXPECT_EQ(full.count, 8u);  // 256 KiB and eight times the text have room for twelve
  EXPECT_TRUE(LosesData(full));
}

TEST(Ledger, NvtxRangesBeyondTheirLimit) {
  test::ModelBuilder builder;
  builder.Process(ProcessEventKind::kExisting, 1, 5, 5, "app");
  GpuProcess& process = builder.events.gpu_processes.emplace_back();
  process.time_ns = 1;
  process.instance = InstanceId{1};
  process.pid = process.namespace_pid = 5;
  for (uint64_t i = 0; i < 70; ++i) {
    NvtxEvent& event = builder.events.nvtx_events.emplace_back();
    event.instance = InstanceId{1};
    event.time_ns = 1 + i;
    event.kind = NvtxKind::kPush;
    event.tid = 5;
    event.text = builder.Text("r" + std::to_string(i));
  }
  builder.Sample(100, 5, 5, builder.Stack({0x1000}));
  builder.End(200);
  Analysis analysis(builder.Build());
  BuildCallTree(analysis, {.mode = TreeMode::kCpu, .nvtx_frames = true});
  EXPECT_EQ(EntryOf(analysis, "call_tree_full").count, 6u);
}

TEST(Ledger, FindingsOfThePasses) {
  test::ModelBuilder builder;
  builder.End(5'000'000);
  builder.Call(1, 1, 211, 1'000, 1'100, 1);          // pending, without a stack
  builder.Call(2, 1, 211, 5'000'000, 5'000'100, 1);  // its kernel comes before it
  builder.Clock(2, 0, {1'000});
  builder.AddKernel(2, 1, 4'999'000, 5'000'000, "early");
  builder.AddKernel(1, 9, 50, 60, "without a launch and a clock");
  const Analysis analysis(builder.Build());
  const std::map<std::string, uint64_t> expected = {{"launch_pending", 1},
                                                    {"launch_stack_missing", 2},
                                                    {"kernel_without_launch", 1},
                                                    {"kernel_before_launch", 1},
                                                    {"clock_pairs_missing", 1}};
  EXPECT_EQ(Counts(BuildLedger(analysis)), expected);
  EXPECT_NE(LedgerText(BuildLedger(analysis)).find("by up to 1000 ns"), std::string::npos);
}

TEST(Ledger, WorkWithoutItsCallAndLateEvents) {
  test::ModelBuilder builder;
  builder.End(5'000);
  builder.Clock(1, 0, {1'000});
  for (uint64_t at : {4'999, 5'000, 5'001}) builder.Sample(at, 1, 1, {});
  builder.Process(ProcessEventKind::kExit, 6'000, 1, 1);
  builder.events.memcpys.push_back({.instance = {1}, .start_ns = 10, .end_ns = 20, .tail = {}});
  builder.events.memsets.push_back({.instance = {1}, .start_ns = 10, .end_ns = 20, .tail = {}});
  builder.events.graph_launches.push_back(
      {.instance = {1}, .start_ns = 10, .end_ns = 20, .tail = {}});
  builder.events.synchronizations.push_back(
      {.instance = {1}, .start_ns = 2'000'000, .end_ns = 2'000'000, .tail = {}});
  const Analysis analysis(builder.Build());
  const std::map<std::string, uint64_t> expected = {{"kernel_without_launch", 1},
                                                    {"work_without_launch", 2},
                                                    {"wait_without_launch", 1},
                                                    {"late_event", 3}};
  EXPECT_EQ(Counts(BuildLedger(analysis)), expected);
}

TEST(Ledger, GraphNodesAndRecordsWithoutATime) {
  test::ModelBuilder builder;
  builder.End(5'000);
  builder.Clock(1, 0, {1'000});
  builder.Call(1, 1, 311, 1'000, 1'100, 1).return_value = 0;
  builder.AddKernel(1, 1, 0, 0, "k");
  const auto advice = [](const Analysis& analysis) {
    for (const LedgerEntry& entry : BuildLedger(analysis)) {
      if (entry.name == "invalid_time") return entry;
    }
    return LedgerEntry{};
  };
  test::ModelBuilder graphs;
  graphs.Call(1, 1, 311, 1'000, 1'100, 1).return_value = 0;
  graphs.AddKernel(1, 1, 0, 0, "k");
  graphs.AddKernel(1, 1, 0, 0, "k").graph_node_id = 5;
  const LedgerEntry of_kernels = advice(Analysis(builder.Build()));
  EXPECT_EQ(of_kernels.count, 1u);
  EXPECT_TRUE(of_kernels.details.empty());
  EXPECT_EQ(of_kernels.advice.find("--cuda-graph-trace"), std::string::npos);
  const Analysis analysis(graphs.Build());
  const LedgerEntry of_nodes = advice(analysis);
  EXPECT_EQ(of_nodes.count, 2u);
  EXPECT_EQ(of_nodes.details, std::vector<std::string>{"1 of them from CUDA graph nodes"});
  EXPECT_NE(of_nodes.advice.find("device buffers"), std::string::npos);
  EXPECT_NE(of_nodes.advice.find("--cuda-graph-trace=graph"), std::string::npos);
  EXPECT_EQ(Counts(BuildLedger(analysis)).at("graph_node_unknown"), 1u);
}

TEST(Ledger, MoreDetailsThanAreShown) {
  test::ModelBuilder builder;
  builder.End(5);
  for (const char* detail : {"a", "b", "c", "d", "e", "a", "f", "e"}) {
    builder.Lose("cupti_dropped", 1, detail);
  }
  const Analysis analysis(builder.Build());
  EXPECT_EQ(BuildLedger(analysis).at(0).details,
            (std::vector<std::string>{"a", "b", "c", "d", "and 2 more"}));
}

// An update of a whole graph, nobody knows of which.
TEST(Ledger, AnUpdateOfAnUnknownGraph) {
  test::ModelBuilder builder;
  builder.End(5);
  builder.events.graph_nodes.push_back(
      {.instance = {1}, .time_ns = 1, .change = GraphNodeChange::kGraphUpdated});
  const Analysis analysis(builder.Build());
  const std::map<std::string, uint64_t> expected = {{"graph_node_unknown", 1}};
  EXPECT_EQ(Counts(BuildLedger(analysis)), expected);
  EXPECT_EQ(BuildLedger(analysis).at(0).details,
            std::vector<std::string>{"updates of unidentified graphs: 1"});
}

TEST(Ledger, WhatLosesData) {
  const auto loses = [](std::string name, Severity severity) {
    LedgerEntry entry;
    entry.name = std::move(name);
    entry.severity = severity;
    return LosesData(entry);
  };
  EXPECT_TRUE(loses("cupti_dropped", Severity::kLost));
  EXPECT_TRUE(loses("perf_records_lost", Severity::kPartial));
  EXPECT_FALSE(loses("stack_unreadable", Severity::kPartial));
  EXPECT_FALSE(loses("stack_truncated", Severity::kPartial));
  EXPECT_TRUE(loses("file_cut", Severity::kLost));
  EXPECT_TRUE(loses("of_a_newer_version", Severity::kLost));
  EXPECT_FALSE(loses("file_missing", Severity::kPartial));
  EXPECT_FALSE(loses("launch_failed", Severity::kNote));
}

}  // namespace
}  // namespace xpu
