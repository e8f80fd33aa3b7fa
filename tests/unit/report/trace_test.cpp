#include <gtest/gtest.h>

#include "format/base/file.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

// The document as a whole is compared by the golden test; here is what that scene has not.
std::string Trace(test::ModelBuilder& builder) {
  Analysis analysis(builder.Build());
  return test::Written([&](Output& output) { WriteChromeTrace(analysis, {}, output); });
}

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
                                           .working_directory = {}});
  builder.Clock(1, 0, {4'000});
  builder.AddKernel(1, 1, 4'001, 5'003, "k");
  EXPECT_TRUE(Has(Trace(builder), "\"ts\":0.000,\"dur\":1.002"));
}

}  // namespace
}  // namespace xpu
