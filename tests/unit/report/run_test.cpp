#include "report/run.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

constexpr View kViews[] = {View::kSummary, View::kFolded, View::kChromeTrace, View::kTop,
                           View::kDump};

class RunTest : public testing::Test {
 protected:
  Status Run(View view = View::kSummary) {
    ReportOptions options;
    options.captures = {folder_ / "capture.xpu"};
    options.output = folder_ / "out";
    options.view = view;
    outcome_ = {};
    return RunReport(options, outcome_);
  }
  void Write(std::string_view bytes) {
    std::ofstream(folder_ / "capture.xpu", std::ios::binary) << bytes;
  }
  std::string Out() const { return ReadFile(folder_ / "out").value(); }

  test::TempFolder folder_;
  ReportOutcome outcome_;
};

TEST_F(RunTest, NoFile) {
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().ToString(), folder_ / "capture.xpu" +
                                           ": open: No such file or directory\n"
                                           "hint: record one first: xpu-record -- PROGRAM");
}

TEST_F(RunTest, AnEmptyFile) {
  Write("");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, folder_ / "capture.xpu" + ": is empty, not a capture");
}

TEST_F(RunTest, WhatIsNoCapture) {
  Write("#!/bin/sh\necho this is not a capture, however long it may be\n");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));  // nothing is begun
}

TEST_F(RunTest, AFolder) {
  std::filesystem::create_directory(folder_ / "capture.xpu");
  EXPECT_FALSE(Run().ok());
}

TEST_F(RunTest, TheCaptureIsNotOverwritten) {
  ASSERT_TRUE(test::ModelBuilder().WriteCapture(folder_ / "out").ok());
  const std::string before = Out();
  std::filesystem::create_hard_link(folder_ / "out", folder_ / "capture.xpu");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Out(), before);
}

TEST_F(RunTest, EveryViewOfACaptureWithoutEvents) {
  ASSERT_TRUE(test::ModelBuilder().WriteCapture(folder_ / "capture.xpu").ok());
  for (const View view : kViews) EXPECT_TRUE(Run(view).ok());
}

TEST_F(RunTest, EveryViewOfACaptureWithoutSamples) {
  test::ModelBuilder builder;
  builder.Source(10);
  builder.Process(ProcessEventKind::kExisting, 1, 5, 5, "true");
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(folder_ / "capture.xpu").ok());
  for (const View view : kViews) {
    ASSERT_TRUE(Run(view).ok());
    const bool shows_stacks = view == View::kFolded || view == View::kFlameGraph;
    EXPECT_EQ(
        outcome_.notes,
        shows_stacks ? "no stacks to show: no sample was taken of cpu-clock, 100000000 Hz\n" : "");
    EXPECT_FALSE(outcome_.data_lost);
    if (view == View::kFolded) {
      EXPECT_EQ(Out(), "");
    }
  }
}

TEST_F(RunTest, ACaptureCutInTheMiddleIsReportedWithItsLoss) {
  test::ModelBuilder builder;
  builder.Source(10);
  for (uint64_t i = 0; i < 100; ++i) builder.Sample(i, 5, 5, builder.Stack({i}));
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(folder_ / "capture.xpu").ok());
  const auto size = std::filesystem::file_size(folder_ / "capture.xpu");
  std::filesystem::resize_file(folder_ / "capture.xpu", size - 10);
  ASSERT_TRUE(Run(View::kFolded).ok());
  EXPECT_NE(outcome_.notes.find("(file_cut)"), std::string::npos);
  EXPECT_TRUE(outcome_.data_lost);
}

TEST_F(RunTest, TheSummaryFitsItsWidth) {
  test::ModelBuilder builder;
  builder.Source(10);
  const std::string long_name(300, 'n');
  builder.Process(ProcessEventKind::kExisting, 1, 5, 5, long_name);
  builder.Map(1, 5, 0x1000, 0x1000, 0, "/" + long_name);
  builder.Sample(3, 5, 5, builder.Stack({0x1010}));
  builder.Call(1, 1, 211, 1, 2, 5);
  builder.AddKernel(1, 1, 10, 9'999'999'999'999, long_name);
  ASSERT_TRUE(builder.WriteCapture(folder_ / "capture.xpu").ok());
  ASSERT_TRUE(Run().ok());
  std::ifstream out(folder_ / "out");
  const std::string folder = folder_.path();
  for (std::string line; std::getline(out, line);) {
    if (line.find(folder) != std::string::npos) continue;
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace xpu
