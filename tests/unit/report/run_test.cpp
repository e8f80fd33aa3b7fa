#include "report/cli/run.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "report/cli/report_options.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

class RunTest : public testing::Test {
 protected:
  Status Run(std::string_view view = "") {
    ReportOptions options;
    options.captures = {directory_ / "capture.xpu"};
    options.output = directory_ / "out";
    options.view = &FindView(view);
    outcome_ = {};
    return RunReport(options, outcome_);
  }
  void Write(std::string_view bytes) {
    std::ofstream(directory_ / "capture.xpu", std::ios::binary) << bytes;
  }
  std::string Out() const { return ReadFile(directory_ / "out").value(); }

  test::TempDirectory directory_;
  ReportOutcome outcome_;
};

TEST_F(RunTest, NoFile) {
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().ToString(), directory_ / "capture.xpu" +
                                           ": open: No such file or directory\n"
                                           "hint: record one first: xpu-record -o " +
                                           directory_ / "capture.xpu" + " -- PROGRAM");
}

TEST_F(RunTest, TheDefaultNameNeedsNoOption) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const Status status = RunReport({}, outcome_);
  std::filesystem::current_path(before);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().hint, "record one first: xpu-record -- PROGRAM");
}

TEST_F(RunTest, ATableThatIsTakenForACapture) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  ReportOptions options;
  options.captures = {"cuda_gpu_kern_sum"};
  const Status status = RunReport(options, outcome_);
  std::filesystem::current_path(before);
  EXPECT_EQ(status.error().hint, "--table cuda_gpu_kern_sum prints this table");
}

// xpu-report < a.xpu
TEST_F(RunTest, ACaptureOnStandardInputNeedsAName) {
  const UniqueFd input(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const UniqueFd before_input(::dup(STDIN_FILENO));
  ASSERT_GE(::dup2(input.get(), STDIN_FILENO), 0);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const Status status = RunReport({}, outcome_);
  std::filesystem::current_path(before);
  ASSERT_GE(::dup2(before_input.get(), STDIN_FILENO), 0);
  EXPECT_EQ(status.error().hint,
            "record one first: xpu-record -- PROGRAM; to read standard input: xpu-report -");
}

TEST_F(RunTest, TextIsNotWrittenAsATable) {
  ReportOptions options;
  options.output = directory_ / "out.csv";
  EXPECT_EQ(RunReport(options, outcome_).error().ToString(),
            directory_ / "out.csv" + ": this view writes text\nhint: --top -o " +
                directory_ / "out.csv" + " writes tables");
}

TEST_F(RunTest, TextIsNotWrittenAsAPicture) {
  ReportOptions options;
  options.output = directory_ / "out.svg";
  const Status status = RunReport(options, outcome_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().ToString(), directory_ / "out.svg" +
                                           ": this view writes text\nhint: --flamegraph -o " +
                                           directory_ / "out.html" + " writes a flame graph");
}

TEST_F(RunTest, NoPageForATerminal) {
  int main_end = -1, terminal = -1;
  ASSERT_EQ(::openpty(&main_end, &terminal, nullptr, nullptr, nullptr), 0);
  const UniqueFd both[] = {UniqueFd(main_end), UniqueFd(terminal)};
  const UniqueFd before(::dup(STDOUT_FILENO));
  const auto error = [&](std::string_view view, std::string output) {
    ReportOptions options;
    options.captures = {directory_ / "not-there"};
    options.view = &FindView(view);
    options.output = std::move(output);
    ::dup2(terminal, STDOUT_FILENO);
    const Status status = RunReport(options, outcome_);
    ::dup2(before.get(), STDOUT_FILENO);
    return status.error().message;
  };
  const std::string missing = directory_ / "not-there" + ": open: No such file or directory";
  EXPECT_EQ(error("--flamegraph", ""), "--flamegraph: standard output is a terminal");
  EXPECT_EQ(error("--chrome-trace", "-"), "--chrome-trace: standard output is a terminal");
  EXPECT_EQ(error("--perfetto", "-"), "--perfetto: standard output is a terminal");
  EXPECT_EQ(error("--flamegraph", directory_ / "a.html"), missing);
  EXPECT_EQ(error("--folded", ""), missing);
}

// What the error's hint is, of a file that is not there.
TEST_F(RunTest, PartsOfWhatIsNotThere) {
  const auto hint = [&](const std::string& name) {
    ReportOptions options;
    options.captures = {directory_ / name};
    return RunReport(options, outcome_).error().hint;
  };
  const std::string directory = directory_ / "";
  const auto none = [&](const char* name) {
    return "record one first: xpu-record -o " + directory + name + " -- PROGRAM";
  };
  for (const char* part : {"capture.0002.xpu", "bare.0002", "odd[1].10000.xpu"}) {
    std::ofstream(directory_ / part) << "part";
  }
  EXPECT_EQ(hint("capture.xpu"),
            "it was recorded in parts; name all of them: " + directory + "capture.*.xpu");
  EXPECT_EQ(hint("bare"), "it was recorded in parts; name all of them: " + directory + "bare.*");
  EXPECT_EQ(hint("odd[1].xpu"),
            "it was recorded in parts; name all of them: " + directory + "odd[1].*.xpu");
  EXPECT_EQ(hint("cap.xpu"), none("cap.xpu"));
  EXPECT_EQ(hint("capture.data"), none("capture.data"));
  EXPECT_EQ(hint("other.0001.xpu"), none("other.0001.xpu"));
  const std::string left =
      "xpu-record --rotate-keep removes the oldest parts; the remaining ones: ";
  EXPECT_EQ(hint("capture.0001.xpu"), left + directory + "capture.*.xpu");
  EXPECT_EQ(hint("bare.0001"), left + directory + "bare.*");
  // The same through links that lead nowhere any more.
  std::filesystem::create_symlink("capture.0001.xpu", directory_ / "newest");
  EXPECT_EQ(hint("newest"), "it is a link to " + directory +
                                "capture.0001.xpu, which does not exist; " + left + directory +
                                "capture.*.xpu");
  std::filesystem::create_symlink("/nowhere/at/all.xpu", directory_ / "link.xpu");
  EXPECT_EQ(hint("link.xpu"), "it is a link to /nowhere/at/all.xpu, which does not exist");
}

// "xpu-report annotate x.xpu"
TEST_F(RunTest, ACommandOfAnotherProfilerIsNoCapture) {
  const auto hint = [&](const std::string& word) {
    ReportOptions options;
    options.captures = {word, directory_ / "x.xpu"};
    return RunReport(options, outcome_).error().hint;
  };
  const std::string begin = "xpu-report has no subcommands: xpu-report ";
  EXPECT_EQ(hint("stats"), begin + "--top [CAPTURE]");
  EXPECT_EQ(hint("annotate"), begin + "--folded --lines [CAPTURE]");
  EXPECT_EQ(hint("diff"), begin + "--diff BEFORE [CAPTURE]");
}

// Through a pipe it has no name to unpack.
TEST_F(RunTest, APackedCaptureOnStandardInput) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  ASSERT_TRUE(WriteAll(input.get(), std::string("\x1f\x8b") + std::string(100, 'x'), "pipe").ok());
  input.reset();
  const UniqueFd before(::dup(STDIN_FILENO));
  ::dup2(output.get(), STDIN_FILENO);
  ReportOptions options;
  options.captures = {"-"};
  const Status status = RunReport(options, outcome_);
  ::dup2(before.get(), STDIN_FILENO);
  EXPECT_EQ(status.error().ToString(),
            "/dev/stdin: a compressed file, not a capture\nhint: decompress it first: gunzip -c "
            "FILE | xpu-report - (captures are compressed already)");
}

TEST_F(RunTest, WaitingForAFifoIsReported) {
  test::ModelBuilder builder;
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(directory_ / "written.xpu").ok());
  const std::string bytes = ReadFile(directory_ / "written.xpu").value();
  ASSERT_EQ(::mkfifo((directory_ / "capture.xpu").c_str(), 0600), 0);
  std::thread writer([&] { Write(bytes); });
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Run().ok());
  writer.join();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "xpu-report: " + (directory_ / "capture.xpu") +
                ": waiting for a capture to be written to this FIFO\n");
}

TEST_F(RunTest, AnEmptyFile) {
  Write("");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, directory_ / "capture.xpu" + ": the file is empty");
}

TEST_F(RunTest, WhatIsNoCapture) {
  Write("#!/bin/sh\necho this is not a capture, however long it may be\n");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));  // nothing is begun
}

TEST_F(RunTest, ADirectory) {
  std::filesystem::create_directory(directory_ / "capture.xpu");
  EXPECT_FALSE(Run().ok());
}

TEST_F(RunTest, TheCaptureIsNotOverwritten) {
  ASSERT_TRUE(test::ModelBuilder().WriteCapture(directory_ / "out").ok());
  const std::string before = Out();
  std::filesystem::create_hard_link(directory_ / "out", directory_ / "capture.xpu");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(Out(), before);
}

TEST_F(RunTest, EveryViewOfACaptureWithoutEvents) {
  ASSERT_TRUE(test::ModelBuilder().WriteCapture(directory_ / "capture.xpu").ok());
  for (const View& view : Views()) {
    if (view.other_capture.empty() && view.write != nullptr) {
      EXPECT_TRUE(Run(view.option).ok());
    }
  }
}

TEST_F(RunTest, EveryViewOfACaptureWithoutSamples) {
  test::ModelBuilder builder;
  builder.Source(10);
  builder.Process(ProcessEventKind::kExisting, 1, 5, 5, "true");
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
  for (const View& view : Views()) {
    if (!view.other_capture.empty() || view.write == nullptr) continue;
    ASSERT_TRUE(Run(view.option).ok());
    if (view.option == "--annotate") {
      EXPECT_NE(outcome_.notes.find("no samples of GPU code"), std::string::npos);
      continue;
    }
    EXPECT_EQ(outcome_.notes,
              view.shows_paths
                  ? "no stacks to show: no samples were taken of cpu-clock, 100000000 Hz\n"
                  : "");
    EXPECT_FALSE(outcome_.data_lost);
    if (view.option == "--folded") {
      EXPECT_EQ(Out(), "");
    }
  }
}

// Otherwise a misspelled name looks like a program without steps.
TEST_F(RunTest, StepsThatNothingMatchesAreReported) {
  test::ModelBuilder builder;
  builder.Process(ProcessEventKind::kExisting, 1, 5, 5, "app");
  GpuProcess& process = builder.events.gpu_processes.emplace_back();
  process.time_ns = 1;
  process.instance = {1};
  process.pid = process.namespace_pid = 5;
  const auto add = [&](uint64_t time_ns, NvtxKind kind) {
    NvtxEvent& event = builder.events.nvtx_events.emplace_back();
    event.time_ns = time_ns;
    event.instance = {1};
    event.tid = 5;
    event.kind = kind;
    event.text = builder.Text("step");
  };
  add(2, NvtxKind::kPush);
  add(4, NvtxKind::kPop);
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
  const auto notes = [&](const std::string& steps, const std::vector<uint32_t>& pids = {}) {
    ReportOptions options;
    options.captures = {directory_ / "capture.xpu"};
    options.output = directory_ / "out";
    options.steps.definition = ParseStepDefinition(steps).value();
    options.filter.step_text = steps;
    options.filter.pids = pids;
    ReportOutcome outcome;
    EXPECT_TRUE(RunReport(options, outcome).ok());
    return outcome.notes;
  };
  EXPECT_EQ(notes("auto"), "");
  EXPECT_EQ(notes("nvtx::step"), "");
  EXPECT_EQ(notes("nvtx:no such"), "no steps to show: none match --step 'nvtx:no such'\n");
  EXPECT_EQ(notes("function:nosuch"), "no steps to show: none match --step function:nosuch\n");
  EXPECT_EQ(notes("nvtx:nosuch", {5}), "no steps to show: none match --step nvtx:nosuch --pid 5\n");
}

TEST_F(RunTest, ACaptureCutInTheMiddleIsReportedWithItsLoss) {
  test::ModelBuilder builder;
  builder.Source(10);
  for (uint64_t i = 0; i < 100; ++i) builder.Sample(i, 5, 5, builder.Stack({i}));
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
  const auto size = std::filesystem::file_size(directory_ / "capture.xpu");
  std::filesystem::resize_file(directory_ / "capture.xpu", size - 10);
  ASSERT_TRUE(Run("--folded").ok());
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
  ASSERT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
  ASSERT_TRUE(Run().ok());
  std::ifstream out(directory_ / "out");
  const std::string directory = directory_.path();
  for (std::string line; std::getline(out, line);) {
    if (line.find(directory) != std::string::npos) continue;
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST_F(RunTest, SaysThatNothingMatchesTheFilters) {
  test::ModelBuilder builder;
  builder.Process(ProcessEventKind::kExec, 1, 5, 5, "app");
  builder.Sample(2, 5, 5, builder.Stack({0x1000}));
  builder.End(9);
  ASSERT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
  const auto notes = [&](std::string_view view, uint32_t pid) {
    ReportOptions options;
    options.captures = {directory_ / "capture.xpu"};
    options.output = directory_ / "out";
    options.view = &FindView(view);
    options.filter.pids = {pid};
    ReportOutcome outcome;
    EXPECT_TRUE(RunReport(options, outcome).ok());
    return outcome.notes;
  };
  for (const std::string_view view : {"--top", "--script", "--chrome-trace", "--perfetto"}) {
    EXPECT_EQ(notes(view, 5).find("nothing to show"), std::string::npos) << view;
    EXPECT_NE(notes(view, 6).find("nothing to show: no event matches --pid 6\n"), std::string::npos)
        << view;
  }
  EXPECT_EQ(notes("--folded", 6), "no stacks to show: none match --pid 6\n");
}

}  // namespace
}  // namespace xpu
