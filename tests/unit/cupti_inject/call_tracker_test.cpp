#include "cupti_inject/call_tracker.h"

#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

constexpr uint32_t kRuntimeLaunch = 2u << 28 | 211;
constexpr uint32_t kDriverLaunch = 1u << 28 | 307;
constexpr uint32_t kDriverWait = 1u << 28 | 126;

TEST(CallTracker, RuntimeCallWithDriverCallInside) {
  CallTracker tracker{};
  TrackedCall finished{};
  TrackedCall* call = tracker.Enter(7, kRuntimeLaunch);
  ASSERT_NE(call, nullptr);
  call->start_ns = 100;
  EXPECT_EQ(tracker.Enter(7, kDriverLaunch), nullptr);
  EXPECT_FALSE(tracker.Exit(7, kDriverLaunch, &finished));
  ASSERT_TRUE(tracker.Exit(7, kRuntimeLaunch, &finished));
  EXPECT_EQ(finished.start_ns, 100u);
  EXPECT_EQ(finished.key, kRuntimeLaunch);
  EXPECT_EQ(tracker.depth, 0u);
}

TEST(CallTracker, SeveralDriverCallsInsideOneRuntimeCall) {
  CallTracker tracker{};
  TrackedCall finished{};
  ASSERT_NE(tracker.Enter(7, kRuntimeLaunch), nullptr);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(tracker.Enter(7, kDriverLaunch), nullptr);
    EXPECT_EQ(tracker.Enter(7, kDriverLaunch), nullptr);
    EXPECT_FALSE(tracker.Exit(7, kDriverLaunch, &finished));
    EXPECT_FALSE(tracker.Exit(7, kDriverLaunch, &finished));
  }
  EXPECT_TRUE(tracker.Exit(7, kRuntimeLaunch, &finished));
}

TEST(CallTracker, DriverCallAlone) {
  CallTracker tracker{};
  TrackedCall finished{};
  EXPECT_NE(tracker.Enter(1, kDriverLaunch), nullptr);
  EXPECT_TRUE(tracker.Exit(1, kDriverLaunch, &finished));
  EXPECT_NE(tracker.Enter(2, kDriverLaunch), nullptr);
  EXPECT_TRUE(tracker.Exit(2, kDriverLaunch, &finished));
}

TEST(CallTracker, NestedCallWithAnotherIdIsACallOfItsOwn) {
  CallTracker tracker{};
  TrackedCall finished{};
  ASSERT_NE(tracker.Enter(7, kRuntimeLaunch), nullptr);
  ASSERT_NE(tracker.Enter(8, kDriverWait), nullptr);
  EXPECT_TRUE(tracker.Exit(8, kDriverWait, &finished));
  EXPECT_EQ(finished.correlation_id, 8u);
  EXPECT_TRUE(tracker.Exit(7, kRuntimeLaunch, &finished));
  EXPECT_EQ(finished.correlation_id, 7u);
}

TEST(CallTracker, ExitWithoutEntryIsIgnored) {
  CallTracker tracker{};
  TrackedCall finished{};
  EXPECT_FALSE(tracker.Exit(7, kRuntimeLaunch, &finished));
  // We began to listen inside the runtime call.
  EXPECT_NE(tracker.Enter(9, kDriverLaunch), nullptr);
  EXPECT_TRUE(tracker.Exit(9, kDriverLaunch, &finished));
  EXPECT_FALSE(tracker.Exit(9, kRuntimeLaunch, &finished));
  EXPECT_EQ(tracker.depth, 0u);
}

TEST(CallTracker, EntryWithoutExitIsDroppedWhenTheCallAroundItReturns) {
  CallTracker tracker{};
  TrackedCall finished{};
  ASSERT_NE(tracker.Enter(7, kRuntimeLaunch), nullptr);
  ASSERT_NE(tracker.Enter(8, kDriverWait), nullptr);  // never returns
  EXPECT_TRUE(tracker.Exit(7, kRuntimeLaunch, &finished));
  EXPECT_EQ(tracker.depth, 0u);
}

TEST(CallTracker, TooDeepForgetsTheOutermost) {
  CallTracker tracker{};
  TrackedCall finished{};
  for (uint32_t id = 1; id <= CallTracker::kMaxDepth + 1; ++id) {
    ASSERT_NE(tracker.Enter(id, kDriverLaunch), nullptr);
  }
  for (uint32_t id = CallTracker::kMaxDepth + 1; id >= 2; --id) {
    EXPECT_TRUE(tracker.Exit(id, kDriverLaunch, &finished));
    EXPECT_EQ(finished.correlation_id, id);
  }
  EXPECT_FALSE(tracker.Exit(1, kDriverLaunch, &finished));
}

}  // namespace
}  // namespace xpu::inject
