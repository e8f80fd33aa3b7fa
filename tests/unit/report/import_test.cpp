#include "report/import/import.h"

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "report/cli/report_options.h"
#include "report/cli/run.h"
#include "report/import/import_trace.h"
#include "report/model/load.h"
#include "report/query/statistics.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

constexpr std::string_view kRuntimeCall =
    "RUNTIME [ 100, 200 ] duration 100, \"cudaLaunchKernel_v7000\", cbid 211, processId 5, "
    "threadId 6, correlationId 7\n";

struct ImportedRow {
  uint64_t count = 0;
  uint64_t total = 0;
  bool operator==(const ImportedRow&) const = default;
};
using ImportedRows = std::map<std::string, ImportedRow>;

ImportedRows RowsOf(const std::vector<Statistics>& statistics) {
  ImportedRows rows;
  for (const Statistics& row : statistics) rows[row.name] = {row.count, row.total};
  return rows;
}

class ImportTest : public testing::Test {
 protected:
  static std::string Sample(const std::string& name) {
    return std::string(XPU_IMPORT_SAMPLES) + "/" + name;
  }
  // Imports a text and keeps what was said.
  Status Import(std::string_view text) {
    std::ofstream(directory_ / "trace.txt", std::ios::binary) << text;
    return ImportFile(directory_ / "trace.txt");
  }
  Status ImportFile(const std::string& path) {
    Result<std::string> notes = ImportCuptiText(path, directory_ / "out.xpu");
    if (!notes.ok()) return notes.error();
    notes_ = notes.value();
    return Ok();
  }
  Analysis& Imported(std::string_view text) {
    EXPECT_TRUE(Import(text).ok());
    return Load();
  }
  Analysis& Load() {
    analysis_ = std::make_unique<Analysis>(LoadCapture(directory_ / "out.xpu").value());
    return *analysis_;
  }
  Analysis& ImportedSample(const std::string& name) {
    EXPECT_TRUE(ImportFile(Sample(name)).ok());
    return Load();
  }
  std::string Text(StringId id) const { return std::string(analysis_->model.Text(id)); }

  test::TempDirectory directory_;
  std::string notes_;
  std::unique_ptr<Analysis> analysis_;
};

// Reads the text in another way than the importer: by patterns of whole lines.
ImportedRows SumLines(const std::string& path, const std::string& pattern, uint64_t per_row = 1) {
  std::ifstream file(path);
  const std::regex expression(pattern);
  ImportedRows rows;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (!std::regex_match(line, match, expression)) continue;
    ImportedRow& row = rows[match[2]];
    row.count += per_row;
    row.total += std::stoull(match[1]);
  }
  return rows;
}

TEST_F(ImportTest, TablesHaveTheNumbersOfTheText) {
  const Analysis& analysis = ImportedSample("cuda13.txt");
  const std::string file = Sample("cuda13.txt");
  const GpuNames names(analysis, KernelNames::kMangled);
  const ImportedRows kernels = RowsOf(KernelTimes(analysis, names));
  EXPECT_EQ(kernels, SumLines(file, R"re(CONCURRENT_KERNEL .* duration (\d+), "(.*)", .*)re"));
  EXPECT_EQ(kernels.size(), 2u);
  ImportedRows calls = SumLines(file, R"re(RUNTIME .* duration (\d+), "(.*)_v\d+", .*)re");
  calls["cuDeviceGetCount"] = {1, 1500};  // the other driver call is part of a runtime call
  EXPECT_EQ(RowsOf(ApiTimes(analysis)), calls);
  EXPECT_EQ(calls.size(), 7u);
  EXPECT_EQ(RowsOf(CopyTimes(analysis)), (ImportedRows{{"[CUDA memcpy Host-to-Device]", {1, 12500}},
                                                       {"[CUDA memset]", {1, 1250}}}));
  EXPECT_EQ(
      RowsOf(CopySizes(analysis)),
      (ImportedRows{{"[CUDA memcpy Host-to-Device]", {1, 200000}}, {"[CUDA memset]", {1, 4096}}}));
  EXPECT_EQ(RowsOf(OverheadTimes(analysis)), (ImportedRows{{"lazy function loading", {1, 8000}},
                                                           {"CUPTI buffer flush", {1, 1500}}}));
}

TEST_F(ImportTest, EachKernelHasItsCallShapeAndPlace) {
  Analysis& analysis = ImportedSample("cuda13.txt");
  const Correlation& correlation = analysis.correlation;
  const Kernel& kernel = analysis.model.events.kernels[1];
  EXPECT_EQ(Text(kernel.name), "_Z6vecSubPKiS0_Pii");
  EXPECT_EQ(kernel.grid_y, 2);
  EXPECT_EQ(kernel.block_x, 16);
  EXPECT_EQ(kernel.cluster_x, 2u);
  EXPECT_EQ(kernel.static_shared_memory_bytes, 2048);
  EXPECT_EQ(kernel.stream_id, 14u);
  EXPECT_EQ(kernel.channel_type, 1u);
  const GpuWork& work = correlation.work[1];
  EXPECT_EQ(work.match, MatchKind::kById);
  EXPECT_EQ(work.start_ns, 1763779200000250000u);  // the text's own
  const Launch& launch = correlation.launches[work.launch];
  EXPECT_EQ(launch.pid, 4711u);
  EXPECT_EQ(launch.tid, 4712u);
  EXPECT_EQ(correlation.counts.launches_seen, 2u);
  EXPECT_EQ(correlation.counts.launches_matched, 2u);
  EXPECT_EQ(correlation.counts.kernels_without_launch, 0u);
  EXPECT_EQ(test::Folded(analysis, {.tree = {}, .unit = TimeUnit::kNanoseconds}),
            (std::map<std::string, uint64_t>{
                {"process-4711;[unknown launch];cudaLaunchKernel;[GPU_Kernel]vecAdd(int const*, "
                 "int const*, int*, int)",
                 60000},
                {"process-4711;[unknown launch];cudaMemcpyAsync;[GPU_Memcpy]HtoD", 12500},
                {"process-4711;[unknown launch];cudaMemsetAsync;[GPU_Memset]", 1250},
                {"thread-4712;[unknown launch];cudaLaunchKernel;[GPU_Kernel]vecSub(int const*, "
                 "int const*, int*, int)",
                 100000}}));
}

TEST_F(ImportTest, MarkersAreRangesAndMoments) {
  const LoadedEvents& events = ImportedSample("cuda13.txt").model.events;
  ASSERT_EQ(events.nvtx_events.size(), 4u);
  const NvtxEvent& domain = events.nvtx_events[0];
  EXPECT_EQ(domain.kind, NvtxKind::kDomain);
  EXPECT_EQ(Text(domain.text), "solver");
  const NvtxEvent& start = events.nvtx_events[1];
  EXPECT_EQ(start.kind, NvtxKind::kStart);
  EXPECT_EQ(Text(start.text), "step 0");
  EXPECT_EQ(start.time_ns, 1763779200000100000u);
  EXPECT_EQ(start.domain, 0u);
  const NvtxEvent& mark = events.nvtx_events[2];
  EXPECT_EQ(mark.kind, NvtxKind::kMark);
  EXPECT_EQ(Text(mark.text), "converged");
  EXPECT_EQ(mark.domain, domain.domain);
  EXPECT_EQ(mark.category, 3u);
  EXPECT_EQ(mark.color, 0xff00ff00u);
  EXPECT_EQ(mark.payload_type, NvtxPayload::kUint64);
  EXPECT_EQ(mark.payload, 42u);
  const NvtxEvent& end = events.nvtx_events[3];
  EXPECT_EQ(end.kind, NvtxKind::kEnd);
  EXPECT_EQ(end.range, start.range);
}

TEST_F(ImportTest, MemoryWaitsAndDevices) {
  const LoadedEvents& events = ImportedSample("cuda13.txt").model.events;
  ASSERT_EQ(events.memory_operations.size(), 2u);
  const MemoryOperation& memory = events.memory_operations[1];
  EXPECT_EQ(memory.operation, 2u);
  EXPECT_EQ(memory.memory_kind, 3u);
  EXPECT_EQ(memory.size_bytes, 200000u);
  EXPECT_EQ(memory.address, 139637976727552u);
  EXPECT_EQ(memory.correlation_id, 11u);
  EXPECT_EQ(memory.context_id, 1u);
  ASSERT_EQ(events.synchronizations.size(), 1u);
  EXPECT_EQ(events.synchronizations[0].type, 3u);
  ASSERT_EQ(events.devices.size(), 1u);
  EXPECT_EQ(Text(events.devices[0].name), "NVIDIA H200");
  EXPECT_EQ(notes_,
            directory_ / "out.xpu" +
                ": 2 kernels, 2 memcpys and memsets, 8 API calls, 2 allocation records, 3 "
                "markers\ndriver calls left out because a runtime call contains them: 1\nlines "
                "that are not records: 5; the first is line 1: Device Name: NVIDIA H200\n");
}

TEST_F(ImportTest, TheFormatBeforeCuda11) {
  const Analysis& analysis = ImportedSample("cuda10.txt");
  const LoadedEvents& events = analysis.model.events;
  // A time before the trace's own start is negative there; all are later by 1001.
  EXPECT_EQ(events.recording_info.front().start_ns, 1u);
  ASSERT_EQ(events.kernels.size(), 2u);
  const Kernel& kernel = events.kernels[0];
  EXPECT_EQ(Text(kernel.name), "void scale<float [4]>(float*, float)");
  EXPECT_EQ(kernel.start_ns, 152001u);
  EXPECT_EQ(kernel.end_ns - kernel.start_ns, 20000u);
  EXPECT_EQ(kernel.grid_x, 98);
  EXPECT_EQ(kernel.block_x, 512);
  EXPECT_EQ(kernel.dynamic_shared_memory_bytes, 32);
  EXPECT_EQ(events.memcpys[0].copy_kind, 1u);
  EXPECT_EQ(events.memcpys[0].correlation_id, 15u);
  EXPECT_EQ(events.memsets[0].value, 7u);
  EXPECT_EQ(events.overheads.rows().at(0).overhead_kind, 1u);
  EXPECT_EQ(events.overheads.rows().at(0).object_id_1, 3049046016u);
  EXPECT_EQ(events.devices.rows().at(0).multiprocessor_count, 80u);
  EXPECT_EQ(events.devices.rows().at(0).compute_capability_major, 7u);
  EXPECT_EQ(events.nvtx_events.rows().at(0).kind, NvtxKind::kStart);
  EXPECT_EQ(events.nvtx_events.rows().at(1).kind, NvtxKind::kEnd);
  EXPECT_EQ(events.losses.rows().at(0).count, 12u);  // "Dropped 12 activity records"
  EXPECT_EQ(analysis.correlation.counts.launches_matched, 1u);
  // The name of a callback id is not in the text, but that of a launch is known.
  EXPECT_EQ(RowsOf(ApiTimes(analysis))["cudaLaunchKernel"], (ImportedRow{1, 9000}));
}

TEST_F(ImportTest, ProcessesWithTheSameIdsAreDistinguishedByTime) {
  const Analysis& analysis = Imported(
      "RUNTIME [ 100, 110 ] duration 10, \"cudaLaunchKernel_v7000\", cbid 211, processId 5, "
      "threadId 5, correlationId 7\n"
      "RUNTIME [ 500, 510 ] duration 10, \"cudaLaunchKernel_v7000\", cbid 211, processId 6, "
      "threadId 6, correlationId 7\n"
      "CONCURRENT_KERNEL [ 600, 700 ] duration 100, \"late\", correlationId 7\n"
      "CONCURRENT_KERNEL [ 200, 300 ] duration 100, \"early\", correlationId 7\n"
      "CONCURRENT_KERNEL [ 800, 900 ] duration 100, \"alone\", correlationId 9\n");
  const auto pid_of = [&](size_t kernel) {
    return analysis.correlation.PidOf(analysis.model.events.kernels[kernel].instance);
  };
  EXPECT_EQ(pid_of(0), 6u);
  EXPECT_EQ(pid_of(1), 5u);
  EXPECT_EQ(pid_of(2), 6u);  // of the line before it that names one
  EXPECT_EQ(analysis.correlation.counts.launches_matched, 2u);
  EXPECT_EQ(analysis.correlation.counts.kernels_without_launch, 1u);
}

TEST_F(ImportTest, TextsWithLessInThem) {
  const Analysis& analysis = Imported(
      "RUNTIME [ 100, 200 ] \"cudaLaunchKernel\", correlationId 7\n"
      "RUNTIME [ 210, 230 ] \"cudaFree\", correlationId 8\n"
      "CONCURRENT_KERNEL [ 300, 400 ] duration 100, \"k\", correlationId 7\n");
  EXPECT_EQ(RowsOf(ApiTimes(analysis)),
            (ImportedRows{{"cudaLaunchKernel", {1, 100}}, {"cudaFree", {1, 20}}}));
  EXPECT_EQ(analysis.correlation.counts.launches_matched, 1u);
}

TEST_F(ImportTest, LinesOfARecordMayBeParted) {
  const Analysis& analysis = Imported(std::string(kRuntimeCall) +
                                      "CONCURRENT_KERNEL [ 300, 400 ] \"k\", correlationId 7\n"
                                      "the program says something\n"
                                      "\tgrid [ 9, 1, 1 ], block [ 2, 1, 1 ]\n"
                                      "PC_SAMPLING sourceLocatorId 1\n"
                                      "\tdeviceId 3, contextId 1, streamId 2\n");
  EXPECT_EQ(analysis.model.events.kernels[0].grid_x, 9);
  EXPECT_EQ(analysis.model.events.kernels[0].device_id, 0u);  // that line is another record's
  EXPECT_NE(notes_.find("lines that are not records: 3; the first is line 3: the program"),
            std::string::npos);
}

TEST_F(ImportTest, PeerCopiesGraphsAndPools) {
  const Analysis& analysis = Imported(
      "MEMCPY2 \"PtoP\" [ 10, 20 ] duration 10, size 64, srcKind DEVICE, dstKind DEVICE, "
      "correlationId 3,\n"
      "\tdeviceId 0, contextId 1, streamId 7, graphId 0, graphNodeId 0, channelId 4, channelType "
      "ASYNC_MEMCPY\n"
      "\tsrcDeviceId 0, srcContextId 1, dstDeviceId 1, dstContextId 2\n"
      "GRAPH_TRACE [ 30, 50 ] duration 20, correlationId 4\n"
      " deviceId 1, contextId 2, streamId 13, graphId 5\n"
      "MEMORY2 [ 60 ] memoryOperationType ALLOCATE, memoryKind DEVICE, size 8, address 16, pc 0,\n"
      "  deviceId 1, contextId 2, streamId 13, processId 9, correlationId 6, isAsync 1,\n"
      "  memoryPool LOCAL, memoryPoolAddress 32,  memoryPoolThreshold 0\n"
      "  source app.cu\n"
      ", memoryPoolSize: 128, memoryPoolUtilizedSize: 8\n");
  const LoadedEvents& events = analysis.model.events;
  EXPECT_TRUE(events.memcpys[0].peer_to_peer);
  EXPECT_EQ(events.memcpys[0].copy_kind, 10u);
  EXPECT_EQ(events.memcpys[0].destination_device_id, 1u);
  EXPECT_EQ(events.graph_launches[0].graph_id, 5u);
  EXPECT_EQ(events.graph_launches[0].device_id, 1u);
  const MemoryOperation& memory = events.memory_operations.rows().at(0);
  EXPECT_TRUE(memory.is_async);
  EXPECT_EQ(memory.pool_type, 1u);
  EXPECT_EQ(memory.pool_address, 32u);
  EXPECT_EQ(memory.pool_size_bytes, 128u);
  EXPECT_EQ(memory.pool_utilized_bytes, 8u);
  EXPECT_EQ(analysis.correlation.PidOf(memory.instance), 9u);
  EXPECT_EQ(notes_.find("lines of no record"), std::string::npos);
}

// What would differ from the record is left out, and reported.
TEST_F(ImportTest, LinesThatAreCut) {
  const LoadedEvents& events =
      Imported(std::string(kRuntimeCall) +
               "RUNTIME [ 210, 230 ] duration 20, \"cudaFree\", cbid 22, processId 5\n"  // no id
               "CONCURRENT_KERNEL [ 300, 400 ] duration 100, \"k\n"
               "\tgrid [ 1, 1, 1 ], block [ 1, 1, 1 ]\n"
               "CONCURRENT_KERNEL [ 500, 600 ] duration 100, \"whole\", correlationId 7\n"
               "MEMSET [ 700, 80\n"
               "CONCURRENT_KERNEL [ 900, 950 ] duration 50, \"last\", correlationId 7\n"
               "\tdeviceId 0, contextId 1, streamId 1")  // of 13
          .model.events;
  EXPECT_EQ(events.api_calls.size(), 1u);
  EXPECT_EQ(events.memsets.size(), 0u);
  ASSERT_EQ(events.kernels.size(), 1u);
  EXPECT_EQ(Text(events.kernels[0].name), "whole");
  EXPECT_NE(notes_.find("\nlines left out because they are truncated or have numbers out of range: "
                        "4; the first is line 2: RUNTIME [ 210, 230 ]"),
            std::string::npos)
      << notes_;
  EXPECT_EQ(notes_.find("lines of no record"), std::string::npos) << notes_;
}

TEST_F(ImportTest, NumbersThatDoNotFit) {
  const LoadedEvents& events =
      Imported(std::string(kRuntimeCall) +
               "CONCURRENT_KERNEL [ 300, 400 ] duration 100, \"a\", correlationId 4294967296\n"
               "CONCURRENT_KERNEL [ 300, 99999999999999999999 ] \"b\", correlationId 7\n"
               "CONCURRENT_KERNEL [ 300, 400 ] \"c\", correlationId 7\n"
               "\tgrid [ 2147483648, 1, 1 ], block [ 1, 1, 1 ]\n"
               "\tdeviceId 0, contextId 1, streamId 13\n"
               "MEMSET [ 1, 2 ] value 0, size 18446744073709551616, correlationId 7\n"
               "MARKER [ 99999999999999999999 ] id 1, domain d, name n\n"
               "KERNEL panic\n")
          .model.events;
  EXPECT_EQ(events.kernels.size(), 0u);
  EXPECT_EQ(events.memsets.size(), 0u);
  EXPECT_EQ(events.nvtx_events.size(), 0u);
  EXPECT_NE(notes_.find("out of range: 5; the first is line 2: CONCURRENT_KERNEL"),
            std::string::npos)
      << notes_;
  EXPECT_NE(notes_.find("lines that are not records: 1; the first is line 9: KERNEL panic"),
            std::string::npos)
      << notes_;
}

TEST_F(ImportTest, ATextWithoutRecords) {
  const Status status = Import("hello\nDEVICE NVIDIA H200 [ 0 ]\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(status.error().message,
            directory_ / "trace.txt" + ": no activity records found (1 lines)");
  EXPECT_FALSE(ReadFile(directory_ / "out.xpu").ok());  // nothing is begun
  EXPECT_FALSE(Import("").ok());
}

TEST_F(ImportTest, EveryViewShowsIt) {
  for (const char* sample : {"cuda13.txt", "cuda10.txt"}) {
    ASSERT_TRUE(ImportFile(Sample(sample)).ok());
    for (const View& view : Views()) {
      if (!view.other_capture.empty() || view.write == nullptr) continue;
      if (view.option == "--annotate") continue;  // of samples, which no other tool's text has
      ReportOptions options;
      options.captures = {directory_ / "out.xpu"};
      options.output = directory_ / "view";
      options.view = &view;
      ReportOutcome outcome;
      ASSERT_TRUE(RunReport(options, outcome).ok());
      EXPECT_GT(ReadFile(directory_ / "view").value().size(), 100u);
      EXPECT_EQ(outcome.data_lost, std::string_view(sample) == "cuda10.txt");  // 12 dropped
    }
  }
}

TEST_F(ImportTest, TheSummaryDoesNotInventAHost) {
  ASSERT_TRUE(ImportFile(Sample("cuda13.txt")).ok());
  ReportOptions options;
  options.captures = {directory_ / "out.xpu"};
  options.output = directory_ / "view";
  ReportOutcome outcome;
  ASSERT_TRUE(RunReport(options, outcome).ok());
  const std::string text = ReadFile(directory_ / "view").value();
  EXPECT_NE(text.find("[imported from "), std::string::npos);
  EXPECT_EQ(text.find("CPUs"), std::string::npos);
  EXPECT_EQ(text.find("exit status"), std::string::npos);
}

// A text may be cut or damaged anywhere.
TEST_F(ImportTest, AnyTextIsRead) {
  for (const char* sample : {"cuda13.txt", "cuda10.txt"}) {
    std::string text = ReadFile(Sample(sample)).value();
    // Cut at every byte: what is far before the cut makes no difference.
    for (size_t size = 0; size < text.size(); ++size) {
      const size_t begin = size > 600 ? size - 600 : 0;
      ParseCuptiText(std::string_view(text).substr(begin, size - begin));
    }
    for (size_t i = 0; i < text.size(); ++i) {
      for (const char byte : {'\0', '"', '[', '\n', '\xff'}) {
        const char before = std::exchange(text[i], byte);
        ParseCuptiText(std::string_view(text).substr(i > 300 ? i - 300 : 0, 600));
        text[i] = before;
      }
    }
  }
}

TEST_F(ImportTest, NumbersOfAnySize) {
  Analysis& analysis = Imported(
      "RUNTIME [ 18446744073709551615, 9223372036854775808 ] \"f\", cbid 4294967295, processId "
      "4294967295, threadId 4294967295, correlationId 4294967295\n"
      "CONCURRENT_KERNEL [ 9223372036854775808, 18446744073709551615 ] \"k\", correlationId "
      "18446744073709551615\n"
      "MARKER [ 18446744073709551615 ] id 1, domain d, name n\n"
      "Dropped 18446744073709551615 activity records\n"
      "Dropped 18446744073709551615 activity records\n");
  EXPECT_EQ(analysis.model.events.losses.rows().at(0).count, ~uint64_t{0});
  test::Folded(analysis, {});
}

}  // namespace
}  // namespace xpu
