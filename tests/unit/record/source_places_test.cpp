#include "record/symbols/source_places.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include <gtest/gtest.h>
#include <sys/wait.h>
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

// The other user who reads for a process; empty: there is none.
using CallerIds = std::optional<std::pair<uid_t, gid_t>>;

CallerIds CallerFor(uint32_t pid, const char* user, const char* group) {
  ::setenv("SUDO_UID", user, 1);
  ::setenv("SUDO_GID", group, 1);
  SourcePlaces places;
  const SourceNamer namer = places.At(pid, MonotonicNs());
  ::unsetenv("SUDO_UID");
  ::unsetenv("SUDO_GID");
  if (namer.access == nullptr || !namer.access->place()->caller) return std::nullopt;
  const SudoCaller caller = *namer.access->place()->caller;
  return std::pair(caller.user, caller.group);
}

TEST_F(SourcePlacesTest, TheCallerOfSudoReadsForRoot) {
  if (::geteuid() != 0) {
    EXPECT_EQ(CallerFor(pid_, "1000", "1001"), std::nullopt);
    GTEST_SKIP() << "only root is called by sudo";
  }
  EXPECT_EQ(CallerFor(pid_, "1000", "1001"), (std::pair<uid_t, gid_t>(1000, 1001)));
  EXPECT_EQ(places_.At(pid_, MonotonicNs()).access->place()->caller, std::nullopt);
}

TEST_F(SourcePlacesTest, IdsThatAreNoneNameNoCaller) {
  for (const char* wrong : {"", "x", "1000x", "-1", "4294967295", "4294967296"}) {
    EXPECT_EQ(CallerFor(pid_, wrong, "1001"), std::nullopt) << wrong;
    EXPECT_EQ(CallerFor(pid_, "1000", wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(CallerFor(pid_, "0", "0"), std::nullopt) << "root itself";
}

TEST_F(SourcePlacesTest, NobodyElseReadsForAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) == 0) ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto pid = static_cast<uint32_t>(child);
  EXPECT_EQ(places_.At(pid, MonotonicNs()).access->place()->user, 65534U);
  EXPECT_EQ(CallerFor(pid, "1000", "1001"), std::nullopt);
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
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
