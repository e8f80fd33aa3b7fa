#include "record/session/signals.h"

#include <gtest/gtest.h>

#include "tests/unit/durations.h"

namespace xpu {
namespace {

using test::kMs;
constexpr uint64_t kLater = 2 * SignalRouter::kWitnessNs;
constexpr pid_t kTarget = 50;
constexpr pid_t kShell = 70;

using Signals = std::vector<int>;

SignalRouter Router(bool leads_session = false) {
  return SignalRouter({.recorder_leads_session = leads_session, .target = kTarget});
}

Arrival FromProcess(int signal, pid_t sender = kShell) { return {signal, SI_USER, sender}; }
Arrival FromTerminal(int signal) { return {signal, SI_KERNEL, 0}; }

TEST(SignalRouter, SentToTheRecorderAloneIsForwarded) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGTERM), 0);
  EXPECT_TRUE(router.waiting());
  EXPECT_EQ(router.Due(SignalRouter::kWitnessNs - 1, true), Signals{});
  EXPECT_EQ(router.Due(SignalRouter::kWitnessNs, true), Signals{SIGTERM});
  EXPECT_FALSE(router.waiting());
  EXPECT_EQ(router.Due(kLater, true), Signals{});
  EXPECT_EQ(router.requests_to_end(), 1);
}

TEST(SignalRouter, SwitchesAreForTheRecorder) {
  SignalRouter router({.recorder_leads_session = false, .target = kTarget, .takes_switches = true});
  router.AtRecorder(FromProcess(SIGUSR2), 0);
  router.AtRecorder(FromProcess(SIGUSR2), 1);
  router.AtRecorder(FromProcess(SIGUSR1), 1);
  router.AtWitness(FromProcess(SIGUSR2), 1);
  EXPECT_EQ(router.TakeSwitchRequests(), 2);
  EXPECT_EQ(router.TakeSwitchRequests(), 0);
  EXPECT_EQ(router.Due(kLater, true), Signals{SIGUSR1});
  SignalRouter other = Router();
  other.AtRecorder(FromProcess(SIGUSR2), 0);
  EXPECT_EQ(other.TakeSwitchRequests(), 0);
  EXPECT_EQ(other.Due(kLater, true), Signals{SIGUSR2});
}

TEST(SignalRouter, SentToTheGroupIsNot) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGTERM), 0);
  router.AtWitness(FromProcess(SIGTERM), 5 * kMs);
  EXPECT_EQ(router.Due(kLater, true), Signals{});
  EXPECT_EQ(router.requests_to_end(), 1);
}

TEST(SignalRouter, AnIgnoredSignalCountsIfSentToThisProcess) {
  SignalRouter router({.target = kTarget, .ignored = uint64_t{1} << SIGINT});
  router.AtRecorder(FromTerminal(SIGINT), 0);
  router.AtRecorder(FromProcess(SIGINT), 0);
  router.AtWitness(FromProcess(SIGINT), kMs);
  EXPECT_EQ(router.Due(kLater, true), Signals{});
  EXPECT_EQ(router.Due(2 * kLater, false), Signals{});
  EXPECT_EQ(router.requests_to_end(), 0);
  router.AtRecorder(FromProcess(SIGINT), 3 * kLater);
  EXPECT_EQ(router.Due(4 * kLater, true), Signals{SIGINT});
  EXPECT_EQ(router.requests_to_end(), 1);
  // Others are handled as usual.
  router.AtRecorder(FromTerminal(SIGQUIT), 4 * kLater);
  EXPECT_EQ(router.requests_to_end(), 2);
}

TEST(SignalRouter, TheWitnessMayBeFirst) {
  SignalRouter router = Router();
  router.AtWitness(FromProcess(SIGINT), 0);
  EXPECT_EQ(router.Due(kMs, true), Signals{});
  router.AtRecorder(FromProcess(SIGINT), 2 * kMs);
  EXPECT_EQ(router.Due(kLater, true), Signals{});
}

TEST(SignalRouter, AnOldWitnessProvesNothing) {
  SignalRouter router = Router();
  router.AtWitness(FromProcess(SIGINT), 0);
  EXPECT_EQ(router.Due(1000 * kMs, true), Signals{});
  router.AtRecorder(FromProcess(SIGINT), 1001 * kMs);
  EXPECT_EQ(router.Due(1001 * kMs + kLater, true), Signals{SIGINT});
}

TEST(SignalRouter, TimeoutSendsToChildAndGroup) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGINT), 0);
  router.AtRecorder(FromProcess(SIGINT), kMs);
  router.AtWitness(FromProcess(SIGINT), kMs);
  EXPECT_EQ(router.Due(kLater, true), Signals{});
  EXPECT_EQ(router.requests_to_end(), 1);
}

TEST(SignalRouter, ProcessesThatWaitForAProcessorAreWaitedFor) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGINT), 0);
  EXPECT_EQ(router.Senders(), std::vector<pid_t>{kShell});
  EXPECT_EQ(router.Due(kLater, true, true), Signals{});
  router.AtWitness(FromProcess(SIGINT), kLater);
  EXPECT_EQ(router.Due(4 * kLater, true, true), Signals{});
  EXPECT_EQ(router.Due(4 * kLater, true, false), Signals{});
  EXPECT_EQ(router.requests_to_end(), 1);
  EXPECT_TRUE(router.Senders().empty());
}

TEST(SignalRouter, ABusySenderDelaysASignalOnlyForAWhile) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGTERM), 0);
  EXPECT_EQ(router.Due(SignalRouter::kLoadedNs - 1, true, true), Signals{});
  EXPECT_EQ(router.Due(SignalRouter::kLoadedNs, true, true), Signals{SIGTERM});
}

TEST(SignalRouter, SeveralToTheRecorderAreAllForwarded) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGUSR1), 0);
  router.AtRecorder(FromProcess(SIGUSR1), kMs);
  router.AtRecorder(FromProcess(SIGUSR2), kMs);
  EXPECT_EQ(router.Due(kLater, true), (Signals{SIGUSR1, SIGUSR1, SIGUSR2}));
  EXPECT_EQ(router.requests_to_end(), 0);
}

TEST(SignalRouter, SendersAreDistinguished) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGTERM, 71), 0);
  router.AtWitness(FromProcess(SIGTERM, 72), 0);
  EXPECT_EQ(router.Due(kLater, true), Signals{SIGTERM});
}

TEST(SignalRouter, TheTerminalSignalsTheGroup) {
  SignalRouter router = Router();
  router.AtRecorder(FromTerminal(SIGINT), 0);
  router.AtRecorder(FromTerminal(SIGQUIT), 0);
  router.AtRecorder(FromTerminal(SIGHUP), 0);
  EXPECT_FALSE(router.waiting());
  EXPECT_EQ(router.Due(kLater, true), Signals{});
  EXPECT_EQ(router.requests_to_end(), 3);
}

TEST(SignalRouter, AHangupIsSentToTheSessionLeaderOnly) {
  SignalRouter router = Router(true);
  router.AtRecorder(FromTerminal(SIGHUP), 0);
  EXPECT_EQ(router.Due(kLater, true), Signals{SIGHUP});
  EXPECT_EQ(router.requests_to_end(), 1);
}

TEST(SignalRouter, ATimerOfTheKernelIsForTheRecorderAlone) {
  SignalRouter router = Router();
  router.AtRecorder(FromTerminal(SIGALRM), 0);
  EXPECT_EQ(router.Due(kLater, true), Signals{SIGALRM});
}

TEST(SignalRouter, ATargetInItsOwnGroupGetsForwardedSignals) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGTERM), 0);
  router.AtWitness(FromProcess(SIGTERM), 0);
  EXPECT_EQ(router.Due(kLater, false), Signals{SIGTERM});
}

TEST(SignalRouter, SignalsFromTheTargetAreNotRequests) {
  SignalRouter router = Router();
  router.AtRecorder(FromProcess(SIGTERM, kTarget), 0);
  router.AtWitness(FromProcess(SIGTERM, kTarget), 0);
  EXPECT_EQ(router.Due(kLater, true), Signals{});
  EXPECT_EQ(router.requests_to_end(), 0);
}

}  // namespace
}  // namespace xpu
