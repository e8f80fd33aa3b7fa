// When a recording is on: what the command line says, and what comes of it.
#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/options/control_options.h"
#include "record/session/control_fifo.h"
#include "record/session/recording_control.h"
#include "tests/unit/durations.h"

namespace xpu {
namespace {

using test::kMs;
using test::kSecond;

uint64_t Duration(std::string_view text) {
  auto parsed = ParseDuration("--delay", text);
  return parsed.ok() ? *parsed : UINT64_MAX;
}

TEST(ControlOptions, Durations) {
  EXPECT_EQ(Duration("5"), 5 * kSecond);
  EXPECT_EQ(Duration("5s"), 5 * kSecond);
  EXPECT_EQ(Duration("0.5"), 500 * kMs);
  EXPECT_EQ(Duration("500ms"), 500 * kMs);
  EXPECT_EQ(Duration("1.5ms"), 1'500'000u);
  EXPECT_EQ(Duration("2m"), 120 * kSecond);
  EXPECT_EQ(Duration("1h"), 3600 * kSecond);
  EXPECT_EQ(Duration("0"), 0u);
  for (const char* bad :
       {"", "s", "-1", "5x", "1e99", "1.2.3", "5 s", ".", "inf", "99999999999h"}) {
    auto parsed = ParseDuration("--delay", bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().message, "--delay: invalid duration '" + std::string(bad) + "'");
  }
}

TEST(ControlOptions, WaysOfControl) {
  ControlOptions options;
  EXPECT_TRUE(ParseControl("signal", options).ok());
  EXPECT_TRUE(options.by_signal);
  EXPECT_TRUE(ParseControl("fifo:/tmp/a,b", options).ok());
  EXPECT_EQ(options.fifo, "/tmp/a");
  EXPECT_EQ(options.ack_fifo, "b");
  EXPECT_FALSE(ParseControl("fifo:other", options).ok());  // one is enough
  ControlOptions alone;
  EXPECT_TRUE(ParseControl("fifo:a", alone).ok());
  EXPECT_EQ(alone.ack_fifo, "");
  for (const char* bad : {"fifo:", "fifo:,b", "fifo:a,", "fd:3", "", "Signal"}) {
    ControlOptions none;
    EXPECT_FALSE(ParseControl(bad, none).ok()) << bad;
  }
}

TEST(ControlOptions, CaptureRanges) {
  EXPECT_TRUE(ParseCaptureRange("cudaProfilerApi")->is_profiler_api);
  const CaptureRange plain = *ParseCaptureRange("nvtx:a step");
  EXPECT_EQ(plain.name, "a step");
  EXPECT_EQ(plain.domain, "");
  EXPECT_FALSE(plain.any_domain);
  EXPECT_EQ(plain.Text(), "nvtx:a step");
  const CaptureRange in_domain = *ParseCaptureRange("nvtx:step@my app");
  EXPECT_EQ(in_domain.name, "step");
  EXPECT_EQ(in_domain.domain, "my app");
  EXPECT_EQ(in_domain.Text(), "nvtx:step@my app");
  EXPECT_TRUE(ParseCaptureRange("nvtx:step@*")->any_domain);
  EXPECT_EQ(ParseCaptureRange("nvtx:me\\@home@x")->name, "me@home");
  for (const std::string& bad :
       {std::string("nvtx:"), std::string("nvtx:@d"), std::string("nvtx:n@"), std::string("cuda"),
        std::string(), "nvtx:" + std::string(511, 'x')}) {
    EXPECT_FALSE(ParseCaptureRange(bad).ok()) << bad;
  }
  EXPECT_TRUE(ParseCaptureRange("nvtx:" + std::string(510, 'x')).ok());
}

TEST(ControlOptions, Pids) {
  EXPECT_EQ(*ParsePids("12"), (std::vector<pid_t>{12}));
  EXPECT_EQ(*ParsePids("12,7,12"), (std::vector<pid_t>{12, 7}));
  for (const char* bad : {"", ",", "1,", "0", "-4", "x", "1;2", "99999999999"}) {
    EXPECT_FALSE(ParsePids(bad).ok()) << bad;
  }
}

ControlOptions Windows(uint64_t every_ns, uint64_t window_ns) {
  ControlOptions options;
  options.every_ns = every_ns;
  options.window_ns = window_ns;
  return options;
}

TEST(RecordingControl, OpensWindowsWhenAllIsReady) {
  RecordingControl control(Windows(1'000, 100), 10'000);
  EXPECT_FALSE(control.is_on());
  EXPECT_TRUE(control.in_programs());
  control.Advance(10'050, false);
  EXPECT_FALSE(control.is_on());
  control.Advance(10'080, true);
  EXPECT_TRUE(control.is_on());
  EXPECT_EQ(control.cause(), "--every");
  EXPECT_EQ(control.NextNs(), 10'180u);  // the window is as long however late it began
  control.Advance(10'180, true);
  EXPECT_FALSE(control.is_on());
  EXPECT_FALSE(control.in_programs());
  EXPECT_EQ(control.NextNs(), 11'000u);
  control.Advance(11'000, true);
  EXPECT_FALSE(control.is_on());  // nothing could begin to get ready before now
  EXPECT_TRUE(control.in_programs());
  control.Advance(11'001, true);
  EXPECT_TRUE(control.is_on());
}

TEST(RecordingControl, WindowsThatWereMissedAreLeftOut) {
  RecordingControl control(Windows(1'000, 100), 10'000);
  control.Advance(10'000, true);
  control.Advance(14'700, true);  // the end of the first window
  EXPECT_FALSE(control.is_on());
  EXPECT_TRUE(control.in_programs());  // that of 14,000
  control.Advance(14'701, true);
  EXPECT_TRUE(control.is_on());
  control.Advance(14'801, true);
  EXPECT_FALSE(control.in_programs());
  EXPECT_EQ(control.NextNs(), 15'000u);
}

TEST(RecordingControl, AWindowDoesNotWaitForever) {
  RecordingControl control(Windows(100 * kSecond, kSecond), 0);
  control.Advance(kSecond, false);
  EXPECT_FALSE(control.is_on());
  control.Advance(2 * kSecond, false);
  EXPECT_TRUE(control.is_on());
}

TEST(RecordingControl, TheDurationIsThatOfAllWindows) {
  ControlOptions options = Windows(1'000, 100);
  options.duration_ns = 1'500;
  RecordingControl control(options, 0);
  control.Advance(10, true);
  control.Advance(200, true);
  control.Advance(1'000, true);
  EXPECT_FALSE(control.is_over());
  control.Advance(1'510, true);
  EXPECT_TRUE(control.is_over());
}

TEST(RecordingControl, AWindowThatTheEndWouldCutDoesNotBegin) {
  ControlOptions options = Windows(1'000, 100);
  options.duration_ns = 2'000;
  RecordingControl control(options, 0);
  control.Advance(50, true);
  control.Advance(150, true);
  for (const uint64_t time_ns : {1'000, 1'050, 1'150}) control.Advance(time_ns, true);
  control.Advance(2'000, false);  // ends at 2,050
  EXPECT_FALSE(control.in_programs());
  EXPECT_EQ(control.NextNs(), 2'050u);
  control.Advance(2'050, true);
  EXPECT_TRUE(control.is_over());
}

TEST(RecordingControl, AWindowThatIsReadyTooLateDoesNotBegin) {
  ControlOptions options = Windows(1'000, 100);
  options.duration_ns = 1'200;
  RecordingControl control(options, 0);
  control.Advance(10, true);
  control.Advance(110, true);
  control.Advance(1'000, false);
  EXPECT_TRUE(control.in_programs());
  control.Advance(1'150, true);  // ends at 1,210
  EXPECT_FALSE(control.is_on());
  EXPECT_FALSE(control.in_programs());
  control.Advance(1'210, true);
  EXPECT_TRUE(control.is_over());
}

TEST(RecordingControl, IsOnFromTheStart) {
  RecordingControl control({}, 100);
  EXPECT_TRUE(control.is_on());
  EXPECT_TRUE(control.was_ever_on());
  EXPECT_FALSE(control.is_over());
  EXPECT_EQ(control.NextNs(), RecordingControl::kNever);
}

TEST(RecordingControl, DurationCountsFromWhenItIsOn) {
  ControlOptions options;
  options.delay_ns = 10;
  options.duration_ns = 5;
  RecordingControl control(options, 100);
  EXPECT_FALSE(control.is_on());
  EXPECT_EQ(control.cause(), "--delay");
  EXPECT_EQ(control.NextNs(), 110u);
  control.Advance(109);
  EXPECT_FALSE(control.was_ever_on());
  control.Advance(112);  // late
  EXPECT_TRUE(control.is_on());
  EXPECT_EQ(control.NextNs(), 117u);
  control.Advance(116);
  EXPECT_FALSE(control.is_over());
  control.Advance(117);
  EXPECT_TRUE(control.is_over());
}

TEST(RecordingControl, AnEarlierCommandEndsTheDelay) {
  ControlOptions options;
  options.delay_ns = 10;
  RecordingControl control(options, 0);
  control.Toggle("SIGUSR2");
  control.Advance(3);
  EXPECT_TRUE(control.is_on());
  control.Toggle("SIGUSR2");
  control.Advance(20);
  EXPECT_FALSE(control.is_on());
  EXPECT_EQ(control.cause(), "SIGUSR2");
}

TEST(RecordingControl, IsOnlyOnIfUserAndProgramAgree) {
  ControlOptions options;
  options.capture_range.emplace().is_profiler_api = true;
  options.duration_ns = 50;
  RecordingControl control(options, 0);
  EXPECT_FALSE(control.is_on());
  EXPECT_TRUE(control.user_on());
  EXPECT_EQ(control.cause(), "--capture-range");
  control.Disable("fifo");
  control.SetRange(true, "cudaProfilerStart");
  control.Advance(10);
  EXPECT_FALSE(control.is_on());
  EXPECT_FALSE(control.was_ever_on());
  control.Enable("fifo");
  control.Advance(20);
  EXPECT_TRUE(control.is_on());
  EXPECT_EQ(control.NextNs(), 70u);
  control.SetRange(false, "cudaProfilerStop");
  control.Advance(30);
  EXPECT_FALSE(control.is_on());
  EXPECT_EQ(control.cause(), "cudaProfilerStop");
  control.Advance(70);
  EXPECT_TRUE(control.is_over());
}

TEST(RecordingControl, TimesThatOverflowNeverCome) {
  ControlOptions options;
  options.delay_ns = UINT64_MAX;
  options.duration_ns = UINT64_MAX;
  RecordingControl control(options, 100);
  EXPECT_EQ(control.NextNs(), RecordingControl::kNever);
  control.Stop();
  EXPECT_TRUE(control.is_over());
}

class FifoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory_), nullptr);
    ASSERT_EQ(::mkfifo(Commands().c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo(Acks().c_str(), 0600), 0);
  }
  void TearDown() override {
    ::unlink(Commands().c_str());
    ::unlink(Acks().c_str());
    ::rmdir(directory_);
  }
  std::string Commands() const { return std::string(directory_) + "/c"; }
  std::string Acks() const { return std::string(directory_) + "/a"; }
  static void Write(const std::string& path, std::string_view text) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK));
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  char directory_[32] = "/tmp/xpu-fifo-XXXXXX";
};

TEST_F(FifoTest, LinesAreCommands) {
  using Command = ControlFifo::Command;
  auto fifo = ControlFifo::Open(Commands(), Acks());
  ASSERT_TRUE(fifo.ok());
  EXPECT_TRUE(fifo->Read().empty());
  Write(Commands(), "enable\n\ndisa");
  auto lines = fifo->Read();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].command, Command::kEnable);
  Write(Commands(), "ble\nping\nstop\nenable cycles\n\x1b[m\n");
  lines = fifo->Read();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].command, Command::kDisable);
  EXPECT_EQ(lines[1].command, Command::kPing);
  EXPECT_EQ(lines[2].command, Command::kStop);
  EXPECT_EQ(lines[3].command, Command::kUnknown);
  EXPECT_EQ(lines[3].text, "enable cycles");
  EXPECT_EQ(lines[4].text, "?[m");
}

TEST_F(FifoTest, ALineWithoutEndIsBounded) {
  auto fifo = ControlFifo::Open(Commands(), {});
  ASSERT_TRUE(fifo.ok());
  for (int i = 0; i < 20; ++i) {
    Write(Commands(), std::string(4000, 'x'));
    EXPECT_TRUE(fifo->Read().empty());
  }
  Write(Commands(), "\nping\n");
  const auto lines = fifo->Read();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, std::string(ControlFifo::kMaxBytes, 'x'));
  EXPECT_EQ(lines[1].command, ControlFifo::Command::kPing);
}

TEST_F(FifoTest, AcknowledgementsNeverWait) {
  auto fifo = ControlFifo::Open(Commands(), Acks());
  ASSERT_TRUE(fifo.ok());
  for (int i = 0; i < 100'000; ++i) fifo->Acknowledge();  // more than it holds
  const UniqueFd reader(::open(Acks().c_str(), O_RDONLY | O_NONBLOCK));
  char bytes[8];
  ASSERT_EQ(::read(reader.get(), bytes, sizeof(bytes)), 8);
  EXPECT_EQ(std::string_view(bytes, 8), "ack\nack\n");
}

TEST_F(FifoTest, OtherFilesThanFifosAreRefused) {
  EXPECT_EQ(ControlFifo::Open("/dev/null", {}).error().message,
            "--control: /dev/null is not a FIFO");
  EXPECT_FALSE(ControlFifo::Open("/nowhere/x", {}).ok());
  EXPECT_FALSE(ControlFifo::Open(Commands(), "/dev/null").ok());
}

}  // namespace
}  // namespace xpu
