#include <memory>

#include <gtest/gtest.h>

#include "format/base/text.h"
#include "report/views/tables/top_tables.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

using test::kSecond;

// A capture with kernels of these names and times, one after the other.
std::unique_ptr<Analysis> Capture(std::vector<std::pair<std::string_view, uint64_t>> kernels,
                                  uint64_t end_ns) {
  test::ModelBuilder builder;
  uint32_t id = 0;
  uint64_t start = 1'000;
  for (const auto& [name, ns] : kernels) {
    builder.AddKernel(1, ++id, start, start + ns, name);
    start += ns + 10;
  }
  builder.events.recording_info.emplace_back().start_ns = 0;
  builder.End(end_ns);
  Model model = builder.Build();
  model.path = end_ns == 9'000 ? "a.xpu" : "b.xpu";
  return std::make_unique<Analysis>(std::move(model));
}

std::string Diff(Analysis& before, Analysis& after, const ViewOptions& options,
                 std::string& notes) {
  return test::Written([&](Output& output) {
    WriteDiff({{{&before}}, {{&after}}}, options, output, notes);
  });
}

class DiffTest : public testing::Test {
 protected:
  std::unique_ptr<Analysis> before_ = Capture(
      {{"slower", 100}, {"slower", 300}, {"faster", 900}, {"gone", 50}, {"same", 7}}, 9'000);
  std::unique_ptr<Analysis> after_ =
      Capture({{"slower", 1'000}, {"faster", 400}, {"new", 60}, {"same", 7}}, 18'000);
  ViewOptions options_{.table = "cuda_gpu_kern_sum", .sort = {}};
  std::string notes_;
};

TEST_F(DiffTest, WhatGrewMostComesFirst) {
  options_.format = TableFormat::kCsv;
  EXPECT_EQ(Diff(*before_, *after_, options_, notes_),
            "Delta (ns),Before (ns),After (ns),Ratio,Instances Before,Instances After,Change,Name\n"
            "600,400,1000,2.50,2,1,,slower\n"
            "60,0,60,,0,1,new,new\n"
            "0,7,7,1.00,1,1,,same\n"
            "-50,50,0,,1,0,gone,gone\n"
            "-500,900,400,0.44,1,1,,faster\n");
  EXPECT_EQ(notes_,
            "before  a.xpu: ran 9 us, GPU work 1.357 us, GPU busy 1.357 us\n"
            "after   b.xpu: ran 18 us (2.00x), GPU work 1.467 us (1.08x), GPU busy 1.467 us "
            "(1.08x)\n");
}

TEST_F(DiffTest, TextBeginsWithTheWhole) {
  options_.rows = 1;
  const std::string text = Diff(*before_, *after_, options_, notes_);
  EXPECT_TRUE(text.starts_with("before  a.xpu: ran 9 us")) << text;
  EXPECT_NE(text.find("        600          400       1,000   2.50"), std::string::npos) << text;
  EXPECT_EQ(text.find("faster"), std::string::npos);
  EXPECT_EQ(notes_, "");
}

TEST_F(DiffTest, TheRunTimeOfACutCaptureIsNotKnown) {
  test::ModelBuilder builder;
  builder.events.recording_info.emplace_back().start_ns = 0;
  builder.Sample(5'000, 1, 1, {});
  Model model = builder.Build();
  model.path = "cut.xpu";
  Analysis cut(std::move(model));
  const std::string text = Diff(*before_, cut, options_, notes_);
  EXPECT_NE(
      text.find("\nafter   cut.xpu: end not recorded, ran at least 5 us, GPU work 0 ns (0.00x)"),
      std::string::npos)
      << text;
}

TEST_F(DiffTest, EveryTableWithTotals) {
  options_.table = "";
  options_.format = TableFormat::kJson;
  const std::string text = Diff(*before_, *after_, options_, notes_);
  for (const TableKind& kind : TableKinds()) {
    const bool has = text.find(Format("\"{}\": [", kind.name)) != std::string::npos;
    EXPECT_EQ(has, !kind.total.empty() && !kind.by_name_only) << kind.name;
  }
}

// A capture of one second with the clock of one GPU, which is short of power for half of it.
std::unique_ptr<Analysis> ClockCapture(uint32_t sm_clock, bool capped) {
  test::ModelBuilder builder;
  GpuDevice& device = builder.events.gpu_devices.emplace_back();
  device.gpu = 1;
  device.uuid = builder.Text("uuid-of-the-gpu!");
  device.name = builder.Text("NVIDIA H100");
  Device& used = builder.events.devices.emplace_back();
  used.instance = {1};
  used.uuid = device.uuid;
  used.name = device.name;
  for (uint64_t time_ns = 0; time_ns <= kSecond; time_ns += kSecond / 10) {
    GpuState& state = builder.events.gpu_states.emplace_back();
    state.time_ns = time_ns;
    state.gpu = 1;
    state.sm_clock = sm_clock;
    state.power = 300'000;
    state.throttle_reasons = capped && time_ns < kSecond / 2 ? 0x4 : 0;
  }
  builder.events.recording_info.emplace_back().start_ns = 0;
  builder.End(kSecond);
  Model model = builder.Build();
  model.path = "clock.xpu";
  return std::make_unique<Analysis>(std::move(model));
}

TEST(DiffOfClocks, ASlowerClockIsNamedAndComesFirst) {
  const auto before = ClockCapture(1'980, false);
  const auto after = ClockCapture(1'485, true);
  ViewOptions options{.format = TableFormat::kCsv, .table = "gpu_metric_sum", .sort = {}};
  std::string notes;
  EXPECT_EQ(Diff(*before, *after, options, notes),
            "Delta,Before,After,Ratio,Samples Before,Samples After,Change,DevId,Total,Unit,Metric,"
            "Name\n"
            "-495.00,1980.00,1485.00,0.75,11,11,,0,,MHz,sm_clock,[all]\n"
            "0.00,300.00,300.00,1.00,11,11,,0,,W,power,[all]\n");
  EXPECT_NE(notes.find("GPU busy 0 ns\n        GPU 0: SM clock 1980 MHz, power 300 W\nafter"),
            std::string::npos)
      << notes;
  EXPECT_NE(notes.find("\n        GPU 0: SM clock 1485 MHz (0.75x), power 300 W, power-capped 50 % "
                       "of the time\n"),
            std::string::npos)
      << notes;
  options.table = "gpu_throttle_sum";
  EXPECT_EQ(Diff(*before, *after, options, notes),
            "Delta (ns),Before (ns),After (ns),Ratio,Samples Before,Samples After,Change,DevId,"
            "Reason\n"
            "500000000,0,500000000,,0,5,new,0,power limit (software)\n");
}

// Megabytes have digits, and the rows of one name are one.
TEST(DiffTable, FractionsAndTwins) {
  const TableKind kind{.name = "t",
                       .title = "T",
                       .about = "",
                       .columns = {{"Total (MB)"}, {"Count"}, {"Name", true}},
                       .total = "Total (MB)",
                       .count = "Count"};
  const auto table_of = [&](std::vector<Row> rows) {
    Table table{"t", "T", kind.columns, rows.size()};
    table.row = [rows](size_t index, Row& cells) { cells = rows[index]; };
    return table;
  };
  const Table diff =
      DiffTable(kind, {"Before", {{table_of({{"1.250", "1", "a"}, {"0.500", "2", "a"}})}}},
                {"After", {{table_of({{"18446744073709551615", "3", "a"}})}}});
  ASSERT_EQ(diff.shown(), 1u);
  Row cells;
  diff.MakeShown(0, cells);
  EXPECT_EQ(cells[1], "1.750");
  EXPECT_EQ(cells[2], "18446744073709551615.000");
  EXPECT_EQ(cells[4], "3");
  EXPECT_EQ(cells[5], "3");
}

// Rows of the columns of a kind, each once.
Table TableOf(const TableKind& kind, std::vector<Row> rows) {
  Table table{std::string(kind.name), std::string(kind.title), kind.columns, rows.size()};
  table.row = [rows](size_t index, Row& cells) { cells = rows[index]; };
  return table;
}

std::vector<Row> RowsOf(const Table& table) {
  std::vector<Row> rows(table.shown());
  for (size_t i = 0; i < rows.size(); ++i) table.MakeShown(i, rows[i]);
  return rows;
}

const TableKind kNames{.name = "t",
                       .title = "T",
                       .about = "",
                       .columns = {{"Total (ns)"}, {"Count"}, {"Name", true}},
                       .total = "Total (ns)",
                       .count = "Count"};

// So counts have digits too.
TEST(DiffTable, NumbersAreOfOneOfSeveral) {
  const Table diff = DiffTable(kNames, {"Median", {{TableOf(kNames, {{"400", "4", "a"}}), 4}}},
                               {"Slow", {{TableOf(kNames, {{"300", "3", "a"}}), 2}}});
  EXPECT_EQ(diff.columns[1].name, "Median (ns)");
  EXPECT_EQ(diff.columns[5].name, "Count Slow");
  EXPECT_EQ(RowsOf(diff), (std::vector<Row>{{"50", "100", "150", "1.50", "1.0", "1.5", "", "a"}}));
}

TEST(DiffTable, OfSeveralRunsNoiseIsSeparatedFromChange) {
  const auto side_of = [](std::string_view name, std::vector<std::pair<int, int>> runs) {
    DiffSide side{name, {}};
    for (const auto& [steady, noisy] : runs) {
      side.runs.push_back({TableOf(kNames, {{std::to_string(steady), "1", "steady"},
                                            {std::to_string(noisy), "1", "noisy"}})});
    }
    return side;
  };
  const Table diff = DiffTable(kNames, side_of("Before", {{100, 100}, {102, 180}, {101, 140}}),
                               side_of("After", {{111, 190}, {109, 120}, {110, 140}}));
  EXPECT_EQ(RowsOf(diff),
            (std::vector<Row>{{"10", "140", "150", "1.07", "1.0", "1.0", "noise", "noisy"},
                              {"9", "101", "110", "1.09", "1.0", "1.0", "changed", "steady"}}));
}

TEST(DiffTable, KernelsThatChangedTheirNameAreMatchedByPlace) {
  const TableKind kind{.name = "t",
                       .title = "T",
                       .about = "",
                       .columns = {{"Total (ns)"}, {"Count"}, {"Path", true, true}},
                       .total = "Total (ns)",
                       .count = "Count"};
  const auto side_of = [&](std::string_view name, std::vector<Row> rows) {
    return DiffSide{name, {{TableOf(kind, std::move(rows))}}};
  };
  const Table diff = DiffTable(kind,
                               side_of("Before", {{"40", "1", "main;mm;[GPU_Kernel]old"},
                                                  {"7", "1", "main;mm;[GPU_Kernel]same"},
                                                  {"3", "1", "main;mm;[GPU_Kernel]small"},
                                                  {"9", "1", "main;[GPU_Memcpy HtoD]"}}),
                               side_of("After", {{"50", "2", "main;mm;[GPU_Kernel]new"},
                                                 {"7", "1", "main;mm;[GPU_Kernel]same"},
                                                 {"5", "1", "main;other;[GPU_Kernel]new"}}));
  EXPECT_EQ(RowsOf(diff),
            (std::vector<Row>{
                {"10", "40", "50", "1.25", "1", "2", "renamed", "main;mm;[GPU_Kernel]old -> new"},
                {"5", "0", "5", "", "0", "1", "new", "main;other;[GPU_Kernel]new"},
                {"0", "7", "7", "1.00", "1", "1", "", "main;mm;[GPU_Kernel]same"},
                {"-3", "3", "0", "", "1", "0", "gone", "main;mm;[GPU_Kernel]small"},
                {"-9", "9", "0", "", "1", "0", "gone", "main;[GPU_Memcpy HtoD]"}}));
}

TEST(DiffTable, RowsWhoseDetailChangesAreOne) {
  const TableKind kind{.name = "t",
                       .title = "T",
                       .about = "",
                       .columns = {{"Total (ns)"},
                                   {"Count"},
                                   {.name = "Libraries", .is_text = true, .is_description = true},
                                   {"Name", true}},
                       .total = "Total (ns)",
                       .count = "Count"};
  const auto table_of = [&](std::vector<Row> rows) {
    Table table{"t", "T", kind.columns, rows.size()};
    table.row = [rows](size_t index, Row& cells) { cells = rows[index]; };
    return table;
  };
  const Table diff = DiffTable(
      kind, {"Before", {{table_of({{"10", "1", "CUTLASS", "mm"}, {"1", "1", "PyTorch", "add"}})}}},
      {"After", {{table_of({{"30", "2", "cuBLAS", "mm"}, {"1", "1", "PyTorch", "add"}})}}});
  ASSERT_EQ(diff.shown(), 2u);
  Row cells;
  diff.MakeShown(0, cells);
  EXPECT_EQ(cells, Row({"20", "10", "30", "3.00", "1", "2", "", "CUTLASS -> cuBLAS", "mm"}));
  diff.MakeShown(1, cells);
  EXPECT_EQ(cells, Row({"0", "1", "1", "1.00", "1", "1", "", "PyTorch", "add"}));
}

}  // namespace
}  // namespace xpu
