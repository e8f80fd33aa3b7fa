#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "format/base/counted.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/result.h"
#include "format/base/scheduler_times.h"
#include "format/base/text.h"
#include "format/base/time_namespace.h"

namespace xpu {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error{ErrorKind::kInvalid, Format("{}: odd", n), "pass an even number"};
  return n / 2;
}

Result<int> Quarter(int n) {
  XPU_ASSIGN_OR_RETURN(int half, Half(n));
  XPU_ASSIGN_OR_RETURN(int quarter, Half(half));
  return quarter;
}

TEST(TimeNamespace, OffsetsHaveASignAndNanoseconds) {
  EXPECT_EQ(ParseMonotonicOffset("monotonic           0         0\nboottime   7 0\n"), 0);
  EXPECT_EQ(ParseMonotonicOffset("monotonic        5000        12\n"), 5'000'000'000'012);
  EXPECT_EQ(ParseMonotonicOffset("monotonic          -1 999999999\n"), -1);
  EXPECT_EQ(ParseMonotonicOffset("boottime 7 0\n"), 0);
  EXPECT_EQ(ParseMonotonicOffset("monotonic"), 0);
  EXPECT_EQ(ParseMonotonicOffset(""), 0);
}

TEST(Result, CarriesValuesAndErrorsThroughCalls) {
  EXPECT_EQ(Quarter(8).value(), 2);
  auto failed = Quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(failed.error().ToString(), "3: odd\nhint: pass an even number");
}

TEST(Result, SystemErrorNamesTheReasonAndTheKind) {
  Error error = SystemError("perf_event_open(cpu 3)", EACCES);
  EXPECT_EQ(error.kind, ErrorKind::kPermission);
  EXPECT_EQ(error.ToString(), "perf_event_open(cpu 3): Permission denied");
}

TEST(UniqueFd, ClosesOnceAndGivesAway) {
  int raw = ::open("/dev/null", O_RDONLY);
  {
    UniqueFd first(raw);
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT: moved from on purpose
    EXPECT_EQ(second.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
  UniqueFd kept(::open("/dev/null", O_RDONLY));
  int given = kept.release();
  kept.reset();
  EXPECT_GE(::fcntl(given, F_GETFD), 0);
  ::close(given);
}

class FileTest : public testing::Test {
 protected:
  // Tests run at the same time.
  FileTest() : path_(testing::TempDir() + "xpu_file_test_" + std::to_string(::getpid())) {}
  ~FileTest() override { ::unlink(path_.c_str()); }
  std::string Write(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }

 private:
  std::string path_;
};

TEST_F(FileTest, ShortContentSurvivesMoves) {
  auto opened = FileBytes::Open(Write("abc"));
  ASSERT_TRUE(opened.ok());
  FileBytes moved = std::move(opened).value();
  FileBytes again = std::move(moved);
  ASSERT_EQ(again.bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(again.bytes()[2]), 'c');
}

TEST_F(FileTest, ReadFileHoldsItsLimitAndNamesWhatIsMissing) {
  std::string path = Write(std::string(1000, 'x'));
  EXPECT_EQ(ReadFile(path).value().size(), 1000u);
  EXPECT_EQ(ReadFile(path, 999).error().kind, ErrorKind::kInvalid);
  auto missing = ReadFile("/nowhere/at/all");
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().message.find("/nowhere/at/all"), std::string::npos);
  EXPECT_EQ(FileBytes::Open("/").error().message, "/: open: Is a directory");
}

TEST(WriteAll, ReportsAFullDevice) {
  UniqueFd full(::open("/dev/full", O_WRONLY));
  auto status = WriteAll(full.get(), "x", "capture.xpu");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "capture.xpu: write: No space left on device");
}

TEST(SchedulerTimes, ThreadsOnOneCpuWaitForEachOther) {
  if (ReadSchedulerTimes("/proc/self").runs == 0) GTEST_SKIP() << "this kernel counts nothing";
  std::array<SchedulerTimes, 2> times;
  std::atomic<int> started = 0;
  const auto spin = [&](SchedulerTimes& counted) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    ++started;
    while (started < 2) std::this_thread::yield();
    timespec used{};
    do {
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < 40'000'000);
    counted = ReadSchedulerTimes("/proc/thread-self");
  };
  {
    const std::jthread first(spin, std::ref(times[0]));
    const std::jthread second(spin, std::ref(times[1]));
  }
  EXPECT_GE(times[0].run_ns, 30'000'000u);
  EXPECT_GE(times[0].queued_ns + times[1].queued_ns, 20'000'000u);
  EXPECT_EQ(ReadSchedulerTimes("/proc/self/nowhere").runs, 0u);
}

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(Counted(0, "stack", "stacks"), "0 stacks");
  EXPECT_EQ(Counted(1, "stack", "stacks"), "1 stack");
  EXPECT_EQ(Counted(2, "stack", "stacks"), "2 stacks");
  const char* const sentence = "{call|calls} without {its|their} stack, cut {a|b";
  EXPECT_EQ(ForCount(1, sentence), "call without its stack, cut {a|b");
  EXPECT_EQ(ForCount(3, sentence), "calls without their stack, cut {a|b");
  EXPECT_EQ(ForCount(1, "{no bar}"), "{no bar}");
  EXPECT_EQ(ForCount(1, ""), "");
}

}  // namespace
}  // namespace xpu
