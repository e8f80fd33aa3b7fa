#include "cupti_inject/presence.h"

#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_inject/injection.h"

namespace xpu::inject {
namespace {

uint32_t Tid() { return static_cast<uint32_t>(gettid()); }

// Of a thread that was joined: the kernel has it for a moment longer.
void WaitUntilDead(uint32_t tid) {
  while (syscall(SYS_tgkill, getpid(), tid, 0) == 0) usleep(100);
}

TEST(Presence, SeesWhoIsInside) {
  auto presence = std::make_unique<Presence>();
  ThreadSlot* slot = presence->Claim(Tid());
  EXPECT_FALSE(presence->IsAnyInside());
  slot->inside.store(1);
  EXPECT_TRUE(presence->IsAnyInside());
  EXPECT_FALSE(presence->IsAnyInCall());
  slot->inside.store(0);
  slot->calls.store(1);
  EXPECT_FALSE(presence->IsAnyInside());
  EXPECT_TRUE(presence->IsAnyInCall());
  presence->BeginSession();  // it is still in that call, which was recorded in the session before
  EXPECT_FALSE(presence->IsAnyInCall());
}

// One that left by pthread_exit or was canceled in a callback is not waited for.
TEST(Presence, AThreadThatHasDiedIsNotInside) {
  auto presence = std::make_unique<Presence>();
  ThreadSlot* slot = nullptr;
  uint32_t tid = 0;
  std::thread([&] {
    tid = Tid();
    slot = presence->Claim(tid);
    slot->inside.store(1);
    EXPECT_TRUE(presence->IsAnyInside());
  }).join();
  WaitUntilDead(tid);
  EXPECT_FALSE(presence->IsAnyInside());
  presence->BeginSession();
  EXPECT_EQ(presence->Claim(Tid()), slot);
  EXPECT_EQ(slot->inside.load(), 0U);
}

[[noreturn]] void EndBesideFirstThread() {
  std::thread([] { _exit(IsLastThread() ? 1 : 0); }).detach();
  while (true) pause();
}

[[noreturn]] void EndOnLastThread() {
  std::thread([] {
    while (!IsLastThread()) usleep(100);
    _exit(0);
  }).detach();
  syscall(SYS_exit, 1);
  __builtin_unreachable();
}

TEST(Presence, TheLastThreadIsOneWhoseFirstThreadHasEnded) {
  EXPECT_FALSE(IsLastThread());
  for (void (*end)() : {&EndBesideFirstThread, &EndOnLastThread}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) end();
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(Presence, ASlotOfALivingThreadIsKept) {
  auto presence = std::make_unique<Presence>();
  ThreadSlot* own = presence->Claim(Tid());
  presence->BeginSession();
  EXPECT_NE(presence->Claim(Tid()), own);
}

TEST(Presence, WhoComesLateTakesTheSlotOfADeadThread) {
  auto presence = std::make_unique<Presence>();
  uint32_t tid = 0;
  std::thread([&] {
    tid = Tid();
    for (uint32_t i = 0; i < Presence::kSlots; ++i) presence->Claim(tid)->inside.store(1);
  }).join();
  WaitUntilDead(tid);
  ThreadSlot* slot = presence->Claim(Tid());
  EXPECT_FALSE(presence->IsShared(*slot));
  EXPECT_EQ(slot->owner.load(), Tid());
  EXPECT_FALSE(presence->IsAnyInside());
}

TEST(Presence, WhoComesTooLateSharesASlot) {
  auto presence = std::make_unique<Presence>();
  for (uint32_t i = 0; i < Presence::kSlots; ++i) {
    EXPECT_FALSE(presence->IsShared(*presence->Claim(Tid())));
  }
  ThreadSlot* shared = presence->Claim(Tid());
  EXPECT_TRUE(presence->IsShared(*shared));
  EXPECT_EQ(presence->Claim(Tid()), shared);
  shared->inside.store(1);
  EXPECT_TRUE(presence->IsAnyInside());
  presence->Reset();
  EXPECT_FALSE(presence->IsAnyInside());
  EXPECT_FALSE(presence->IsShared(*presence->Claim(Tid())));
}

TEST(Inside, NestsAndEnds) {
  std::thread([] {
    ThreadState& thread = CurrentThread();
    {
      const Inside outer(thread);
      const Inside inner(thread);
      EXPECT_EQ(thread.slot->inside.load(), 2U);
      EXPECT_TRUE(g_process.presence.IsAnyInside());
    }
    EXPECT_EQ(thread.slot->inside.load(), 0U);
  }).join();
}

// What a thread was in when a session ended is nothing to the next.
TEST(ThreadState, BeginsAnewInEachSession) {
  ThreadState thread{};
  thread.BeginSession(1);
  thread.tracker.Enter(7, 1);
  thread.stack.failures = 3;
  thread.starting.Set(&thread, 4);
  thread.ranges.open[0] = 2;
  thread.tid = 5;
  thread.BeginSession(2);
  EXPECT_EQ(thread.session, 2U);
  EXPECT_EQ(thread.tracker.Current(), nullptr);
  EXPECT_EQ(thread.stack.failures, 0U);
  EXPECT_EQ(thread.starting.TypeIn(&thread), 0U);
  EXPECT_EQ(thread.ranges.open[0], 2U);  // the program gets to see it
  EXPECT_EQ(thread.tid, 5U);
}

TEST(StartingNodes, RemembersTheLastGraphs) {
  StartingNodes starting{};
  int graphs[StartingNodes::kMax + 1];
  for (uint32_t i = 0; i <= StartingNodes::kMax; ++i) starting.Set(&graphs[i], i + 1);
  EXPECT_EQ(starting.TypeIn(&graphs[0]), 0U);
  for (uint32_t i = 1; i <= StartingNodes::kMax; ++i) {
    EXPECT_EQ(starting.TypeIn(&graphs[i]), i + 1);
  }
  starting.Set(&graphs[2], 9);
  EXPECT_EQ(starting.TypeIn(&graphs[2]), 9U);
}

}  // namespace
}  // namespace xpu::inject
