#include "report/ledger.h"

#include <map>

#include <gtest/gtest.h>

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
  const auto lose = [&](const char* name, uint64_t count, const char* detail) {
    builder.events.losses.push_back({.time_ns = 1,
                                     .name = builder.Text(name),
                                     .count = count,
                                     .pid = 0,
                                     .instance = {},
                                     .detail = builder.Text(detail)});
  };
  lose("stack_truncated", 2, "");
  lose("cupti_dropped", 3, "x");
  lose("cupti_dropped", 4, "y");
  lose("cupti_dropped", 1, "x");
  lose("write_failed", 0, "");
  const Analysis analysis(builder.Build());
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  ASSERT_EQ(ledger.size(), 2u);
  EXPECT_EQ(ledger[0].name, "cupti_dropped");  // the worst first
  EXPECT_EQ(ledger[0].count, 8u);
  EXPECT_EQ(ledger[0].details, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(ledger[1].name, "stack_truncated");
}

TEST(Ledger, StacksThatWereNotAskedForAreNotMissing) {
  for (const char* settings : {"", "-o x --launch-stacks=none"}) {
    test::ModelBuilder builder;
    builder.End(5);
    RecordingInfo info;
    info.settings = builder.Text(settings);
    builder.events.recording_info.push_back(info);
    builder.Call(1, 1, 211, 1'000, 1'700, 100);
    builder.AddKernel(1, 1, 2'000, 2'100, "k");
    const Analysis analysis(builder.Build());
    EXPECT_EQ(Counts(BuildLedger(analysis)).count("launch_stack_missing"), *settings ? 0u : 1u);
  }
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
                      .cut = true,
                      .unknown_events = 4,
                      .references_lost = 3};
  const Analysis analysis(builder.Build());
  const std::map<std::string, uint64_t> expected = {
      {"block_damaged", 2}, {"file_cut", 1}, {"reference_lost", 3}, {"unknown_events", 4}};
  EXPECT_EQ(Counts(BuildLedger(analysis)), expected);
}

TEST(Ledger, FindingsOfThePasses) {
  test::ModelBuilder builder;
  builder.End(5);
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
  EXPECT_NE(LedgerText(BuildLedger(analysis)).find("the worst by 1000 ns"), std::string::npos);
}

}  // namespace
}  // namespace xpu
