// The library in a program that runs already: sessions one after the other while its threads
// launch, without ptrace: the program starts the thread itself that a recorder would start in it.
#include <algorithm>
#include <memory>
#include <set>

#include "attached_program.h"

namespace xpu::inject {
namespace {

TEST(Attach, FiftySessionsCountEachLaunchAndLeaveNothing) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    Launchers launchers(6);
    const size_t threads = CountEntries("/proc/self/task");
    std::set<uint64_t> instances;
    std::unique_ptr<Footprint> second;
    for (int session = 1; session <= 50; ++session) {
      {
        AttachingRecorder recorder;
        ASSERT_TRUE(recorder.Begin(attach)) << recorder.error();
        const SessionRecords records = EndAfterCalls(recorder, launchers, 200);
        EXPECT_EQ(records.hello.attached, 1U);
        EXPECT_TRUE(instances.insert(records.hello.instance).second);
      }
      if (testing::Test::HasFailure()) FAIL() << "in session " << session;
      if (session == 2) second = std::make_unique<Footprint>(WaitForThreads(threads));
    }
    EXPECT_EQ(WaitForThreads(threads), *second);
  });
}

// What ran when the recording began, and calls that were under way, are of no session of theirs.
TEST(Attach, WorkFromBeforeIsLeftOutAndCounted) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    for (int session = 0; session < 2; ++session) {
      // CUPTI waits for this one, and while it does another is launched.
      Launch(1'500'000'000);
      AttachingRecorder recorder;
      ASSERT_TRUE(recorder.Take(attach) && recorder.ReadHello() && recorder.Answer());
      recorder.StartReading();
      while (recorder.header().state == wire::State::kConnected) usleep(1000);
      Launch(1'500'000'000);
      std::thread waiter([] { EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); });
      ASSERT_TRUE(recorder.WaitUntil(wire::State::kActive));
      for (int i = 0; i < 10; ++i) Launch(0);
      waiter.join();
      const SessionRecords records = recorder.End();
      EXPECT_EQ(records.launches.size(), 10U);
      EXPECT_EQ(records.kernels.size(), 10U);
      EXPECT_EQ(records.lost, 0U);
      EXPECT_EQ(std::count(records.notes.begin(), records.notes.end(),
                           "1 operation launched before the recording began was left out"),
                1);
    }
  });
}

// A kernel that outlasts its session is pending; so is a call that waits for it. While the device
// works and no call ends CUPTI is not finalised, and the next session begins all the same.
TEST(Attach, WorkThatIsNotOverIsPending) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    Launch(0);
    for (int session = 0; session < 2; ++session) {
      AttachingRecorder recorder;
      ASSERT_TRUE(recorder.Begin(attach));
      Launch(0);
      Launch(3'600'000'000'000);
      std::thread([] { cudaDeviceSynchronize(); }).detach();
      EXPECT_TRUE(recorder.WaitForLaunches(3));
      const SessionRecords records = recorder.End();
      EXPECT_EQ(records.launches.size(), 3U);
      EXPECT_EQ(records.returned.size(), 2U);
      ASSERT_EQ(records.kernels.size(), 2U);
      // In the second session it waits for the long one of the first.
      EXPECT_EQ(records.kernels[0].end_ns == 0, session == 1);
      EXPECT_EQ(records.kernels[1].end_ns, 0U);
      EXPECT_EQ(records.lost, 0U);
    }
  });
}

}  // namespace
}  // namespace xpu::inject
