#include "record/symbols/source_places.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "record/base/clock.h"

namespace xpu {
namespace {

class SourcePlacesTest : public ::testing::Test {
 protected:
  void Happen(ProcessEventKind kind, uint64_t time_ns, uint32_t parent_pid = 1) {
    ProcessEvent event;
    event.time_ns = time_ns;
    event.kind = kind;
    event.pid = event.tid = pid_;
    event.parent_pid = event.parent_tid = parent_pid;
    places_.Observe(event, {});
  }

  SourcePlaces places_;
  const uint32_t pid_ = static_cast<uint32_t>(::getpid());
};

TEST_F(SourcePlacesTest, OfThisProcess) {
  const SourceNamer namer = places_.At(pid_, MonotonicNs());
  ASSERT_TRUE(namer.MayRead());
  EXPECT_EQ(namer.access->place()->user, ::geteuid());
  EXPECT_EQ(namer.access->place()->group, ::getegid());
  EXPECT_EQ(namer.access->place()->directory, std::filesystem::current_path());
  EXPECT_EQ(places_.At(pid_, MonotonicNs()).access, namer.access);
}

TEST_F(SourcePlacesTest, AProcessThatHasEndedHasNoAccess) {
  EXPECT_EQ(places_.At(0, 1).access, nullptr);
  EXPECT_FALSE(places_.At(0, 1).MayRead());
}

TEST_F(SourcePlacesTest, ProcessesWithTheSameRightsShareAPlace) {
  const SourceNamer parent = places_.At(static_cast<uint32_t>(::getppid()), MonotonicNs());
  if (parent.access == nullptr || parent.access->place()->directory.empty()) GTEST_SKIP();
  const SourceNamer own = places_.At(pid_, MonotonicNs());
  const bool is_same = parent.access->place()->directory == own.access->place()->directory &&
                       parent.access->place()->user == own.access->place()->user;
  EXPECT_EQ(parent.access->place() == own.access->place(), is_same);
}

// What a program named is not read with the rights of the next one, in whatever order their events
// and the look at the process come.
TEST_F(SourcePlacesTest, TheNextProgramReadsNothingThatTheFirstOneNamed) {
  const uint64_t named_ns = MonotonicNs();
  const uint64_t exec_ns = named_ns + 1;
  while (MonotonicNs() <= exec_ns) continue;
  const SourceNamer late = places_.At(pid_, named_ns);  // the next program's rights
  EXPECT_TRUE(late.MayRead()) << "its event has not come yet";
  Happen(ProcessEventKind::kExec, exec_ns);
  EXPECT_FALSE(late.MayRead());
  EXPECT_FALSE(places_.At(pid_, named_ns).MayRead());
  EXPECT_TRUE(places_.At(pid_, exec_ns + 1).MayRead());
  EXPECT_TRUE(places_.At(pid_, MonotonicNs()).MayRead());
}

// Its samples may come before the event of its beginning.
TEST_F(SourcePlacesTest, WhatAProgramNamedAfterItBeganStays) {
  const uint64_t exec_ns = MonotonicNs();
  const SourceNamer namer = places_.At(pid_, exec_ns + 1);
  Happen(ProcessEventKind::kExec, exec_ns);
  EXPECT_TRUE(namer.MayRead());
}

TEST_F(SourcePlacesTest, AnotherProcessWithItsNumberReadsNothingOfIt) {
  const uint64_t named_ns = MonotonicNs();
  Happen(ProcessEventKind::kExit, named_ns + 1);
  Happen(ProcessEventKind::kFork, named_ns + 2);
  EXPECT_FALSE(places_.At(pid_, named_ns).MayRead());
  EXPECT_TRUE(places_.At(pid_, named_ns + 3).MayRead());
}

TEST_F(SourcePlacesTest, WhatWasTakenBeforeTheNextProgramStays) {
  const SourceNamer before = places_.At(pid_, MonotonicNs());
  const uint64_t taken_ns = MonotonicNs();
  Happen(ProcessEventKind::kExec, taken_ns + 1);
  EXPECT_TRUE(before.MayRead());
}

TEST_F(SourcePlacesTest, NewThreadsChangeNothing) {
  const SourceNamer namer = places_.At(pid_, 1);
  Happen(ProcessEventKind::kFork, 5, pid_);
  EXPECT_TRUE(namer.MayRead());
}

}  // namespace
}  // namespace xpu
