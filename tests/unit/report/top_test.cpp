#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "report/views/tables/top_tables.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

class TopTest : public testing::Test {
 protected:
  TopTest() {
    builder_.events.recording_info.emplace_back().start_ns = 1'000;
    builder_.Process(ProcessEventKind::kExisting, 1'000, 5, 5, "app");
    builder_.Clock(1, 0, {1'000});
    builder_.Callback(1, ApiDomain::kRuntime, 211, "cudaLaunchKernel_v7000");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.time_ns = 1'000;
    process.instance = {1};
    process.pid = 5;
  }
  // A call of 100 ns, a kernel `delay_ns` after its end.
  Kernel& Launch(uint32_t id, uint64_t start_ns, int64_t delay_ns, uint64_t ns) {
    builder_.Call(1, id, 211, start_ns, start_ns + 100, 5);
    const uint64_t start = start_ns + 100 + static_cast<uint64_t>(delay_ns);
    return builder_.AddKernel(1, id, start, start + ns, "k");
  }
  std::string Csv(std::string table, std::string sort = {}) {
    if (!analysis_) analysis_ = std::make_unique<Analysis>(builder_.Build());
    const ViewOptions options{
        .rows = 0, .format = TableFormat::kCsv, .table = std::move(table), .sort = std::move(sort)};
    EXPECT_TRUE(CheckTopOptions(options, false).ok());
    std::string notes;
    return test::Written([&](Output& output) { WriteTop(*analysis_, options, output); });
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(TopTest, LaunchesWaitAndRun) {
  Launch(1, 2'000, 40, 1'000);
  Launch(2, 4'000, 60, 3'000);
  Launch(3, 8'000, -30, 10);  // over before its call is
  EXPECT_EQ(Csv("cuda_kern_exec_sum"),
            "PID,TID,DevId,Count,QCount,TAvg (ns),TMed (ns),TMin (ns),TMax (ns),TStdDev (ns),"
            "AAvg (ns),AMed (ns),AMin (ns),AMax (ns),AStdDev (ns),QAvg (ns),QMed (ns),QMin (ns),"
            "QMax (ns),QStdDev (ns),KAvg (ns),KMed (ns),KMin (ns),KMax (ns),KStdDev (ns),"
            "API Name,Kernel Name\n"
            "5,5,0,3,2,1466.7,1140.0,100,3160,1555.9,100.0,100.0,100,100,0.0,"
            "50.0,50.0,40,60,14.1,1336.7,1000.0,10,3000,1523.2,cudaLaunchKernel,k\n");
}

TEST_F(TopTest, NoKernelWaited) {
  Launch(1, 2'000, -100, 10);
  const std::string csv = Csv("cuda_kern_exec_sum");
  EXPECT_NE(csv.find("5,5,0,1,0,100.0,100.0,100,100,0.0,100.0,100.0,100,100,0.0,,,,,,10.0,"),
            std::string::npos)
      << csv;
}

TEST_F(TopTest, TraceOfTheGpuInOrderOfTime) {
  Kernel& kernel = Launch(1, 5'000, 0, 20);
  kernel.grid_x = 2;
  kernel.block_z = 3;
  kernel.registers_per_thread = 40;
  kernel.dynamic_shared_memory_bytes = 48'000;
  kernel.stream_id = 7;
  Memcpy& copy = builder_.events.memcpys.emplace_back();
  copy.instance = {1};
  copy.start_ns = 3'000;
  copy.end_ns = 4'000;
  copy.size_bytes = 2'000'000;
  copy.copy_kind = 1;
  copy.source_kind = 1;
  copy.destination_kind = 3;
  copy.correlation_id = 9;
  copy.context_id = 2;
  builder_.AddKernel(1, 8, 0, 0, "untimed");
  EXPECT_EQ(Csv("cuda_gpu_trace"),
            "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
            "DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
            "2000,1000,9,,,,,,,,,,2.000,2000000.000,Pageable,Device,(0),2,0,"
            "[CUDA memcpy Host-to-Device]\n"
            "4100,20,1,2,0,0,0,0,3,40,0.000,0.048,,,,,(0),1,7,k\n"
            ",,8,0,0,0,0,0,0,0,0.000,0.000,,,,,(0),1,7,untimed\n");
}

TEST_F(TopTest, TraceOfCallsSortedByDuration) {
  Launch(1, 5'000, 0, 20);
  builder_.Call(1, 2, 211, 7'000, 7'900, 5).return_value = 700;
  EXPECT_EQ(Csv("cuda_api_trace"),
            "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,Thread Name\n"
            "4000,100,cudaLaunchKernel,0,1,5,5,app\n"
            "6000,900,cudaLaunchKernel,700,2,5,5,app\n");
  EXPECT_TRUE(
      Csv("cuda_api_trace", "dur")
          .ends_with(
              "6000,900,cudaLaunchKernel,700,2,5,5,app\n4000,100,cudaLaunchKernel,0,1,5,5,app\n"));
}

TEST_F(TopTest, UnionAndSumOfEachGpuAndStream) {
  uint32_t id = 0;
  const auto run = [&](uint32_t device, uint32_t stream, uint64_t start, uint64_t end) {
    Kernel& kernel = builder_.AddKernel(1, ++id, start, end, "k");
    kernel.device_id = device;
    kernel.stream_id = stream;
  };
  run(0, 7, 2'000, 3'000);
  run(0, 8, 2'500, 3'500);  // at once with the first
  run(0, 8, 2'600, 2'700);  // within both
  run(0, 7, 5'000, 6'000);
  run(1, 7, 2'000, 4'000);
  EXPECT_EQ(Csv("gpu_busy_sum"),
            "Busy (%),Busy Time (ns),Idle Time (ns),Total Time (ns),Instances,DevId,Pid,Ctx,Strm\n"
            "62.5,2500,1500,3100,4,0,,,\n"
            "50.0,2000,2000,2000,2,0,5,1,7\n"
            "25.0,1000,3000,1100,2,0,5,1,8\n"
            "100.0,2000,0,2000,1,1,,,\n"
            "100.0,2000,0,2000,1,1,5,1,7\n");
}

TEST_F(TopTest, GapsTheLongestFirst) {
  builder_.Source(1'000);
  builder_.Sample(6'000, 5, 5, StackId{});
  builder_.Sample(7'000, 5, 5, StackId{});
  Launch(1, 2'000, 0, 1'000);
  Launch(2, 3'300, 0, 1'600);  // 300 after the first one
  Launch(3, 8'000, 0, 100);    // 3,100 after the second one
  EXPECT_EQ(Csv("gpu_gaps"),
            "Start (ns),Duration (ns),Idle (%),DevId,Pid,Tid,Thread Name,Before,After,API Name,"
            "Line,Path\n"
            "4000,3100,91.2,0,5,5,app,k,k,cudaLaunchKernel,,app;[unknown]\n"
            "2100,300,8.8,0,5,5,app,k,k,cudaLaunchKernel,,"
            "app;[no CPU sample];[unknown launch];cudaLaunchKernel\n");
}

TEST_F(TopTest, TracesOnlyByName) {
  Launch(1, 5'000, 0, 20);
  const std::string csv = Csv("");
  EXPECT_NE(csv.find("# cuda_gpu_kern_sum\n"), std::string::npos);
  EXPECT_EQ(csv.find("_trace\n"), std::string::npos);
}

TEST(TableKinds, NamesAreUniqueAndTotalsAreColumns) {
  std::set<std::string_view> names;
  for (const TableKind& kind : TableKinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    for (const std::string_view column : {kind.total, kind.count}) {
      if (column.empty()) continue;
      EXPECT_TRUE(FindColumn(kind.columns, column).ok()) << kind.name << " " << column;
    }
  }
}

TEST(TopTables, TheManPageNamesEveryColumnOfTexts) {
  std::string page = ReadFile(TestsDirectory() + "/../man/xpu-report.1").value();
  page = page.substr(page.find(".SS JSON schema"));
  page = page.substr(0, page.find(".SS CSV"));
  for (const TableKind& kind : TableKinds()) {
    for (const Column& column : kind.columns) {
      const bool is_there = page.find("\"" + column.name + "\"") != std::string::npos ||
                            page.find(" " + column.name + " ") != std::string::npos ||
                            page.find(" " + column.name + "\n") != std::string::npos;
      EXPECT_TRUE(!column.is_text || is_there) << kind.name << ": " << column.name;
    }
  }
}

TEST(CheckTopOptions, UnknownTableOrColumnIsAnError) {
  const auto problem = [](std::string table, std::string sort, bool compares = false) {
    const Status status =
        CheckTopOptions({.table = std::move(table), .sort = std::move(sort)}, compares);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(problem("cuda_api_sum", "med"), "");
  EXPECT_EQ(problem("", "samples"), "");  // of one of the tables
  EXPECT_EQ(problem("", "x"), "--sort: no table has a column 'x'");
  EXPECT_EQ(problem("cuda_gpu_mem_size_sum", "t"), "");
  EXPECT_EQ(problem("cuda_gpu_mem_size_sum", "x"),
            "--sort: 'x' is not one of the columns Total (MB), Count, Avg "
            "(MB), Med (MB), Min (MB), Max (MB), StdDev (MB), Operation");
  EXPECT_EQ(problem("x", ""), "--table: unknown table 'x'");
  EXPECT_EQ(CheckTopOptions({.table = "", .sort = "x"}, false).error().hint,
            "without --sort, the header of each table shows its columns");
  EXPECT_EQ(problem("cuda_api_trace", "", true),
            "--table: cuda_api_trace has no totals to compare");
}

}  // namespace
}  // namespace xpu
