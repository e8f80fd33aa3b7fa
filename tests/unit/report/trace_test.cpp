#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

// The document as a whole is compared by the golden test; here is what that scene has not.
std::string Trace(test::ModelBuilder& builder, const ViewOptions& options = {},
                  std::string* notes = nullptr) {
  Analysis analysis(builder.Build());
  return test::Written([&](Output& output) {
    std::string ignored;
    WriteChromeTrace(analysis, options, output, notes != nullptr ? *notes : ignored);
  });
}

// The lines of the trace with this text.
std::vector<std::string> LinesWith(const std::string& trace, std::string_view part) {
  std::vector<std::string> lines;
  std::istringstream text(trace);
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with(',')) line.pop_back();
    if (line.find(part) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

using TextLines = std::vector<std::string>;

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ChromeTrace, OfAnEmptyCapture) {
  test::ModelBuilder builder;
  builder.End(5);
  EXPECT_EQ(Trace(builder), "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n],\"otherData\":{}}\n");
}

TEST(ChromeTrace, AnyBytesInNames) {
  test::ModelBuilder builder;
  builder.End(5);
  builder.AddKernel(1, 1, 1'000, 2'000, "bad \"\xff\n name");
  EXPECT_TRUE(Has(Trace(builder), "\"name\":\"bad \\\"\xef\xbf\xbd\\u000a name\""));
}

// Two lives of one pid: the second gets a number that no pid has.
TEST(ChromeTrace, AReusedPidIsAnotherProcess) {
  test::ModelBuilder builder;
  builder.End(5);
  builder.Source(10);
  builder.Process(ProcessEventKind::kExisting, 1, 7, 7, "first");
  builder.Process(ProcessEventKind::kExit, 50, 7, 7);
  builder.Process(ProcessEventKind::kFork, 60, 7, 7, {}, 1, 1);
  builder.Process(ProcessEventKind::kExec, 61, 7, 7, "second");
  builder.Sample(20, 7, 7, builder.Stack({0x10}));
  builder.Sample(80, 7, 7, builder.Stack({0x10}));
  const std::string trace = Trace(builder);
  EXPECT_TRUE(
      Has(trace, "\"pid\":7,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"first\"}"));
  EXPECT_TRUE(Has(trace, "\"name\":\"process_name\",\"args\":{\"name\":\"second\"}"));
  EXPECT_FALSE(
      Has(trace, "\"pid\":7,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"second\"}"));
}

// Times before the recording's start would be negative: the first event is the origin then.
TEST(ChromeTrace, TheOriginIsTheFirstEvent) {
  test::ModelBuilder builder;
  builder.End(5);
  builder.events.recording_info.push_back({.start_ns = 5'000,
                                           .recorder_version = {},
                                           .host_name = {},
                                           .kernel_release = {},
                                           .machine = {},
                                           .command_line = {},
                                           .settings = {},
                                           .working_directory = {},
                                           .boot_id = {}});
  builder.Clock(1, 0, {4'000});
  builder.AddKernel(1, 1, 4'001, 5'003, "k");
  EXPECT_TRUE(Has(Trace(builder), "\"ts\":0.000,\"dur\":1.002"));
}

constexpr uint32_t kLaunch = 211;

// A program whose clock and CUPTI's are the same, with one thread.
void AddProgram(test::ModelBuilder& builder) {
  builder.Process(ProcessEventKind::kExisting, 0, 7, 7, "app");
  builder.events.gpu_processes.push_back({.time_ns = 1,
                                          .instance = {1},
                                          .state = InjectState::kConnected,
                                          .pid = 7,
                                          .namespace_pid = 7,
                                          .cupti_path = {},
                                          .detail = {}});
  builder.Clock(1, 0, {1'000'000});
  builder.Callback(1, ApiDomain::kRuntime, kLaunch, "cudaLaunchKernel_v7000");
}

// Frames that two samples share go on; a thread that slept shows nothing meanwhile.
TEST(ChromeTrace, SamplesAreNestedSlices) {
  test::ModelBuilder builder;
  builder.Source(10'000);
  builder.Process(ProcessEventKind::kExisting, 0, 7, 7, "app");
  builder.Process(ProcessEventKind::kName, 0, 7, 8, "worker");
  for (const auto& [address, name] :
       {std::pair(0x10, "main"), std::pair(0x20, "a"), std::pair(0x30, "b")}) {
    builder.events.generated_symbols.push_back({.time_ns = 0,
                                                .pid = 7,
                                                .address = static_cast<uint64_t>(address),
                                                .size_bytes = 16,
                                                .name = builder.Text(name)});
  }
  const StackId a = builder.Stack({0x18, 0x28});
  const StackId b = builder.Stack({0x18, 0x38});
  for (const auto& [time_ns, stack] :
       {std::pair(1'000, a), std::pair(11'500, a), std::pair(21'000, b), std::pair(90'000, a)}) {
    builder.Sample(time_ns, 7, 8, stack);
  }
  EXPECT_EQ(LinesWith(Trace(builder), "\"X\""),
            (TextLines{"{\"ph\":\"X\",\"pid\":7,\"tid\":4194305,\"name\":\"a\","
                       "\"cat\":\"cpu\",\"ts\":0.000,\"dur\":19.875}",
                       "{\"ph\":\"X\",\"pid\":7,\"tid\":4194305,\"name\":\"b\","
                       "\"cat\":\"cpu\",\"ts\":20.000,\"dur\":9.875}",
                       "{\"ph\":\"X\",\"pid\":7,\"tid\":4194305,\"name\":\"main\","
                       "\"cat\":\"cpu\",\"ts\":0.000,\"dur\":29.875}",
                       "{\"ph\":\"X\",\"pid\":7,\"tid\":4194305,\"name\":\"a\","
                       "\"cat\":\"cpu\",\"ts\":89.000,\"dur\":9.875}",
                       "{\"ph\":\"X\",\"pid\":7,\"tid\":4194305,\"name\":\"main\","
                       "\"cat\":\"cpu\",\"ts\":89.000,\"dur\":9.875}"}));
}

// Page faults take no time that is known: moments on a track of their own, beside the clock's.
TEST(ChromeTrace, SamplesThatAreNoTimeAreMoments) {
  test::ModelBuilder builder;
  builder.Source(10'000);
  builder.events.sample_sources.push_back({.source = 2,
                                           .name = builder.Text("page-faults"),
                                           .period = 10,
                                           .unit = builder.Text("events")});
  builder.Process(ProcessEventKind::kExisting, 0, 7, 7, "app");
  builder.events.generated_symbols.push_back(
      {.time_ns = 0, .pid = 7, .address = 0x10, .size_bytes = 16, .name = builder.Text("touch")});
  const StackId stack = builder.Stack({0x18, 0x18});
  builder.Sample(1'000, 7, 7, stack);
  builder.Sample(2'000, 7, 7, stack).source = 2;
  const std::string trace = Trace(builder);
  EXPECT_TRUE(Has(trace,
                  "\"tid\":4194306,\"name\":\"thread_name\",\"args\":{\"name\":\"app (tid "
                  "7): page-faults\"}"))
      << trace;
  EXPECT_EQ(
      LinesWith(trace, "\"i\""),
      (TextLines{
          "{\"ph\":\"i\",\"pid\":7,\"tid\":4194306,\"name\":\"page-"
          "faults\",\"cat\":\"event\",\"s\":\"t\",\"ts\":1.000,\"args\":{\"weight\":10,\"stack\":"
          "\"touch;touch\"}}"}));
  EXPECT_EQ(LinesWith(trace, "\"X\"").size(), 2u);  // the clock's
}

TEST(ChromeTrace, CompilingIsAmongTheOverheads) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.events.jit_operations.push_back({.instance = {1},
                                           .start_ns = 2'000,
                                           .end_ns = 5'000,
                                           .entry_kind = 1,
                                           .operation = 3,
                                           .correlation_id = 9,
                                           .jit_correlation_id = 4,
                                           .cache_size_bytes = 4096,
                                           .cache_path = builder.Text("/cache/1"),
                                           .tid = 7,
                                           .tail = {}});
  const std::string trace = Trace(builder);
  EXPECT_TRUE(Has(trace, "\"args\":{\"name\":\"CUDA overheads\"}"));
  EXPECT_TRUE(Has(trace,
                  "\"name\":\"JIT compile, PTX to machine code\",\"cat\":\"overhead\","
                  "\"ts\":0.000,\"dur\":3.000,\"args\":{\"correlation\":9,\"device\":0,"
                  "\"thread\":7,\"compilation\":4,\"size of the cache\":4096,\"cache\":"
                  "\"/cache/1\"}}"))
      << trace;
}

TEST(ChromeTrace, SynchronizationsNameNoObjectThatTheyDoNotHave) {
  test::ModelBuilder builder;
  builder.End(5);
  const auto wait = [&](uint32_t type, uint32_t stream, uint32_t event, uint64_t start_ns) {
    Synchronization& synchronization = builder.events.synchronizations.emplace_back();
    synchronization.instance = {1};
    synchronization.type = type;
    synchronization.stream_id = stream;
    synchronization.event_id = event;
    synchronization.start_ns = start_ns;
    synchronization.end_ns = start_ns + 10;
  };
  wait(4, ~0u, ~0u, 1'000);
  wait(3, 7, ~0u, 2'000);
  wait(2, 7, 5, 3'000);
  const std::string trace = Trace(builder);
  EXPECT_FALSE(Has(trace, "4294967295")) << trace;
  EXPECT_EQ(LinesWith(trace, "\"stream\":7").size(), 2u);
  EXPECT_EQ(LinesWith(trace, "\"event\":5").size(), 1u);
  // A stream that waits holds up no thread.
  EXPECT_EQ(LinesWith(trace, "\"args\":{\"name\":\"synchronizations\"}").size(), 1u);
  EXPECT_EQ(LinesWith(trace, "\"args\":{\"name\":\"event waits of streams\"}").size(), 1u);
}

TEST(ChromeTrace, KernelsThatOverlapGetALaneBesideTheirStream) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.AddKernel(1, 1, 1'000, 3'000, "k");
  builder.AddKernel(1, 2, 2'000, 4'000, "k");
  builder.AddKernel(1, 3, 2'500, 4'000, "k").stream_id = 9;
  builder.AddKernel(1, 4, 3'000, 4'000, "k");
  const std::string trace = Trace(builder);
  EXPECT_EQ(LinesWith(trace, "thread_name").size(), 3u);
  EXPECT_EQ(LinesWith(trace, "thread_sort_index"),
            (TextLines{"{\"ph\":\"M\",\"pid\":4194305,\"tid\":4194306,\"name\":"
                       "\"thread_sort_index\",\"args\":{\"sort_index\":1792}}",
                       "{\"ph\":\"M\",\"pid\":4194305,\"tid\":4194307,\"name\":"
                       "\"thread_sort_index\",\"args\":{\"sort_index\":1793}}",
                       "{\"ph\":\"M\",\"pid\":4194305,\"tid\":4194308,\"name\":"
                       "\"thread_sort_index\",\"args\":{\"sort_index\":2304}}"}));
  EXPECT_EQ(LinesWith(trace, "stream 7 (2)").size(), 1u);
  EXPECT_EQ(LinesWith(trace, "\"tid\":4194306,\"name\":\"k\"").size(), 2u);
  EXPECT_EQ(LinesWith(trace, "\"tid\":4194307,\"name\":\"k\"").size(), 1u);
}

TEST(ChromeTrace, CallsThatCrossGetATrackOfTheirOwn) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.Call(1, 1, kLaunch, 1'000, 5'000, 7);
  builder.Call(1, 2, kLaunch, 2'000, 3'000, 7);
  builder.Call(1, 3, kLaunch, 4'000, 6'000, 7);
  const std::string trace = Trace(builder);
  EXPECT_EQ(LinesWith(trace, "\"tid\":7,\"name\":\"cudaLaunchKernel\"").size(), 2u);
  EXPECT_EQ(LinesWith(trace, "app, overlapping").size(), 1u);
}

TEST(ChromeTrace, LatencyAndQueueTime) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.Call(1, 1, kLaunch, 1'000, 5'000, 7);
  builder.AddKernel(1, 1, 7'250, 9'000, "k");
  EXPECT_TRUE(Has(Trace(builder), "\"launch latency (us)\":6.250,\"queue time (us)\":2.250"));
}

TEST(ChromeTrace, BandwidthOfCopies) {
  test::ModelBuilder builder;
  AddProgram(builder);
  Memcpy copy;
  copy.instance = {1};
  copy.start_ns = 2'000;
  copy.end_ns = 4'000;
  copy.size_bytes = 25'000;
  copy.copy_kind = 2;
  builder.events.memcpys.push_back(copy);
  const std::string trace = Trace(builder);
  EXPECT_TRUE(Has(trace, "\"bytes\":25000,\"memory bandwidth (GB/s)\":12.500"));
  EXPECT_EQ(LinesWith(trace, "\"copies DtoH\""),
            (TextLines{"{\"ph\":\"C\",\"pid\":4194305,\"tid\":0,\"name\":\"copies DtoH\","
                       "\"ts\":0.000,\"args\":{\"GB/s\":12.500}}",
                       "{\"ph\":\"C\",\"pid\":4194305,\"tid\":0,\"name\":\"copies DtoH\","
                       "\"ts\":2.000,\"args\":{\"GB/s\":0.000}}"}));
}

// Two launches wait for the GPU; it is busy where at least one of two streams is.
TEST(ChromeTrace, CountersOfAGpu) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.Call(1, 1, kLaunch, 1'000, 1'500, 7);
  builder.Call(1, 2, kLaunch, 2'000, 2'500, 7);
  builder.AddKernel(1, 1, 4'000, 5'500, "k");
  builder.AddKernel(1, 2, 4'500, 6'000, "k").stream_id = 9;
  const std::string trace = Trace(builder);
  const std::string counter = "{\"ph\":\"C\",\"pid\":4194305,\"tid\":0,\"name\":";
  EXPECT_EQ(LinesWith(trace, "\"busy\""),
            (TextLines{counter + "\"busy\",\"ts\":3.000,\"args\":{\"%\":100.000}}",
                       counter + "\"busy\",\"ts\":5.000,\"args\":{\"%\":0.000}}"}));
  EXPECT_EQ(LinesWith(trace, "\"queued\""),
            (TextLines{counter + "\"queued\",\"ts\":0.000,\"args\":{\"launches\":1.000}}",
                       counter + "\"queued\",\"ts\":1.000,\"args\":{\"launches\":2.000}}",
                       counter + "\"queued\",\"ts\":3.000,\"args\":{\"launches\":0.500}}",
                       counter + "\"queued\",\"ts\":4.000,\"args\":{\"launches\":0.000}}"}));
}

TEST(ChromeTrace, CutAfterTheFirstEvents) {
  test::ModelBuilder builder;
  AddProgram(builder);
  for (uint32_t i = 1; i <= 4; ++i) {
    builder.Call(1, i, kLaunch, i * 10'000, i * 10'000 + 1'000, 7);
    builder.AddKernel(1, i, i * 10'000 + 5'000, i * 10'000 + 7'000, "k");
  }
  std::string notes;
  const std::string trace = Trace(builder, {.max_events = 3}, &notes);
  EXPECT_EQ(LinesWith(trace, "\"X\"").size(), 3u);
  EXPECT_EQ(LinesWith(trace, "\"ph\":\"i\""),
            (TextLines{"{\"ph\":\"i\",\"pid\":0,\"tid\":0,\"name\":\"cut after 3 events, at "
                       "0.000015s: xpu-report --max-events\",\"s\":\"g\",\"ts\":15.000}"}));
  EXPECT_EQ(LinesWith(trace, "\"busy\"").size(), 2u);  // of the first kernel only
  EXPECT_TRUE(Has(trace, "\"cut\":\"the trace is cut after 3 events, at 0.000015s"));
  EXPECT_EQ(notes,
            "the trace is cut after 3 events, at 0.000015s (--max-events)\n"
            "  hint: --time 0.000015s- shows what follows\n");

  test::ModelBuilder whole;
  AddProgram(whole);
  whole.Call(1, 1, kLaunch, 10'000, 11'000, 7);
  notes.clear();
  EXPECT_FALSE(Has(Trace(whole, {.max_events = 1}, &notes), "\"cut\""));
  EXPECT_EQ(notes, "");
}

// After the last event that is shown there is nothing to cut.
TEST(ChromeTrace, WhatAFilterLeavesOutIsNotCut) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.Call(1, 1, kLaunch, 10'000, 11'000, 7);
  NvtxEvent& mark = builder.events.nvtx_events.emplace_back();
  mark.instance = {1};
  mark.time_ns = 20'000;
  mark.tid = 7;
  Analysis analysis(builder.Build());
  analysis.shown.nvtx_ranges = EventSet::None();
  std::string notes;
  test::Written(
      [&](Output& output) { WriteChromeTrace(analysis, {.max_events = 1}, output, notes); });
  EXPECT_EQ(notes, "");
  analysis.shown = {};
  test::Written(
      [&](Output& output) { WriteChromeTrace(analysis, {.max_events = 1}, output, notes); });
  EXPECT_TRUE(notes.starts_with("the trace is cut after 1 events")) << notes;
}

// The clocks are off: the kernel begins before its call.
TEST(ChromeTrace, NoArrowBackInTime) {
  test::ModelBuilder builder;
  AddProgram(builder);
  builder.Call(1, 1, kLaunch, 5'000, 6'000, 7);
  builder.AddKernel(1, 1, 4'999, 9'000, "k");
  const std::string trace = Trace(builder);
  EXPECT_EQ(LinesWith(trace, "\"cat\":\"launch\"").size(), 0u);
  EXPECT_FALSE(Has(trace, "latency"));
}

}  // namespace
}  // namespace xpu
