// The small parts: quoting, stacks, the ledger and its text, capabilities, the test switch.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/quote.h"
#include "record/base/environment.h"
#include "record/base/process_status.h"
#include "record/base/size_text.h"
#include "record/checks/check.h"
#include "record/gpu/gpu_source.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/kernel_features.h"
#include "record/kernel/perf_event.h"
#include "record/session/summary.h"
#include "record/sink/loss_ledger.h"
#include "record/target/target.h"
#include "record/unwind/stack_frames.h"

namespace xpu {
namespace {

TEST(Quote, Words) {
  EXPECT_EQ(QuoteForShell("plain-1.0/x_y=z:a,b+c@d%"), "plain-1.0/x_y=z:a,b+c@d%");
  EXPECT_EQ(QuoteForShell(""), "''");
  EXPECT_EQ(QuoteForShell("a b"), "'a b'");
  EXPECT_EQ(QuoteForShell("it's"), "'it'\\''s'");
  EXPECT_EQ(QuoteForShell("$HOME;`x`\n"), "'$HOME;`x`\n'");
  EXPECT_EQ(QuoteForShell("~"), "'~'");
  const std::string words[] = {"sh", "-c", "exit 3"};
  EXPECT_EQ(QuoteForShell(words), "sh -c 'exit 3'");
}

// Frame i is at 100 + i.
xpu_stack Stack(int kernel, int user, StackWalk walk) {
  xpu_stack stack{};
  stack.kernel_frames = kernel;
  stack.user_frames = user;
  stack.user_walk = walk.flags;
  stack.user_stop = walk.stop;
  for (size_t i = 0; i < std::size(stack.frames); ++i) stack.frames[i] = 100 + i;
  return stack;
}

// As the kernel's own walker gives it.
xpu_stack Stack(int kernel, int user) {
  return Stack(kernel, user, {XPU_WALK_FRAME_POINTERS, XPU_STOP_NOT_WALKED});
}

uint64_t LossesOf(const StackFrames& frames, LossKind kind) {
  LossLedger losses;
  frames.CountLosses(losses, 7);
  EXPECT_EQ(losses.total(), losses.total(kind)) << "others";
  return losses.total(kind);
}

TEST(StackFrames, KernelThenUserInnermostFirst) {
  StackFrames frames(127);
  frames.Take(Stack(2, 3), sizeof(xpu_stack));
  ASSERT_EQ(frames.frames().size(), 5u);
  EXPECT_EQ(frames.frames()[0], (Frame{FrameKind::kKernel, 100}));
  EXPECT_EQ(frames.frames()[1], (Frame{FrameKind::kKernel, 101}));
  EXPECT_EQ(frames.frames()[2], (Frame{FrameKind::kUser, 102}));
  EXPECT_EQ(frames.frames()[4], (Frame{FrameKind::kUser, 104}));
  EXPECT_EQ(frames.flags(), kStackFramePointers);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 0u);
}

TEST(StackFrames, Flags) {
  StackFrames frames(16);
  frames.Take(Stack(-EFAULT, 2), sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackFramePointers);  // taken in user mode
  frames.Take(Stack(-ENOMEM, 2), sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackFramePointers | kStackKernelFailed);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackUnreadable), 1u);
  frames.Take(Stack(3, -EFAULT), sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackUserFailed);
  EXPECT_EQ(frames.frames().size(), 3u);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackUnreadable), 1u);
  frames.Take(Stack(0, 15), sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackFramePointers);
  frames.Take(Stack(0, 16), sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackFramePointers | kStackTruncated);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 1u);
}

TEST(StackFrames, CompleteByTables) {
  StackFrames frames(16);
  // More than the kernel's walker would give.
  frames.Take(Stack(2, 40, {XPU_WALK_TABLES, XPU_STOP_COMPLETE}), sizeof(xpu_stack));
  ASSERT_EQ(frames.frames().size(), 42u);
  EXPECT_EQ(frames.frames()[41], (Frame{FrameKind::kUser, 141}));
  EXPECT_EQ(frames.flags(), kStackTables | kStackComplete);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 0u);
  frames.Take(Stack(0, 3, {XPU_WALK_TABLES | XPU_WALK_FRAME_POINTERS, XPU_STOP_COMPLETE}),
              sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackTables | kStackFramePointers | kStackComplete);
}

TEST(StackFrames, AThreadWithoutAStack) {
  StackFrames frames(XPU_MAX_FRAMES);
  frames.Take(Stack(2, 0, {0, XPU_STOP_NO_STACK}), sizeof(xpu_stack));
  EXPECT_EQ(frames.frames().size(), 2u);
  EXPECT_EQ(frames.flags(), kStackComplete);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackUnreadable), 0u);
}

TEST(StackFrames, LimitsOfUserAndKernelFrames) {
  StackFrames frames(XPU_MAX_FRAMES);
  const StackWalk walk{XPU_WALK_TABLES, XPU_STOP_DEPTH};
  frames.Take(Stack(126, XPU_MAX_USER_FRAMES, walk), sizeof(xpu_stack));
  ASSERT_EQ(frames.frames().size(), 126u + XPU_MAX_USER_FRAMES);
  EXPECT_EQ(frames.frames().back(), (Frame{FrameKind::kUser, 226 + XPU_MAX_USER_FRAMES - 1}));
  EXPECT_EQ(frames.flags(), kStackTables | kStackTruncated);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 1u);
  // Both are cut: one stack.
  frames.Take(Stack(127, XPU_MAX_USER_FRAMES, walk), sizeof(xpu_stack));
  ASSERT_EQ(frames.frames().size(), 127u + XPU_MAX_USER_FRAMES);
  EXPECT_EQ(frames.flags(), kStackTables | kStackTruncated);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 1u);
}

TEST(StackFrames, CutInTheKernelCompleteInTheProgram) {
  StackFrames frames(16);
  frames.Take(Stack(16, 3, {XPU_WALK_TABLES, XPU_STOP_COMPLETE}), sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackTables | kStackComplete | kStackTruncated);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 1u);
}

TEST(StackFrames, AWalkThatStopsSaysWhy) {
  const struct {
    uint32_t stop;
    LossKind loss;
  } cases[] = {{XPU_STOP_UNREADABLE, LossKind::kStackUnreadable},
               {XPU_STOP_NO_RULE, LossKind::kStackNoRule},
               {XPU_STOP_UNSUPPORTED, LossKind::kStackRuleUnsupported},
               {XPU_STOP_NOT_CODE, LossKind::kStackBadReturn},
               {XPU_STOP_STUCK, LossKind::kStackStuck},
               {XPU_STOP_NOT_CALLED, LossKind::kStackNotCalled}};
  for (const auto& each : cases) {
    StackFrames frames(127);
    frames.Take(Stack(1, 2, {XPU_WALK_TABLES, each.stop}), sizeof(xpu_stack));
    EXPECT_EQ(frames.frames().size(), 3u);
    EXPECT_EQ(frames.flags(), kStackTables);
    EXPECT_EQ(LossesOf(frames, each.loss), 1u) << each.stop;
  }
}

TEST(StackFrames, AWalkBeforeTheTableWasReady) {
  StackFrames frames(127);
  frames.Take(Stack(0, 2, {XPU_WALK_FRAME_POINTERS | XPU_WALK_NOT_READY, XPU_STOP_NO_RULE}),
              sizeof(xpu_stack));
  EXPECT_EQ(frames.flags(), kStackFramePointers | kStackTableNotReady);
  EXPECT_EQ(LossesOf(frames, LossKind::kUnwindTableNotReady), 1u);
}

TEST(StackFrames, AnotherStackLeavesNoTrace) {
  StackFrames frames(16);
  frames.Take(Stack(-ENOMEM, 16, {XPU_WALK_TABLES | XPU_WALK_NOT_READY, XPU_STOP_DEPTH}),
              sizeof(xpu_stack));
  frames.Take(Stack(0, 1), sizeof(xpu_stack));
  EXPECT_EQ(frames.frames().size(), 1u);
  EXPECT_EQ(frames.flags(), kStackFramePointers);
  EXPECT_EQ(LossesOf(frames, LossKind::kStackCut), 0u);
}

TEST(StackFrames, CountsBeyondTheBytes) {
  StackFrames frames(127);
  frames.Take(Stack(2, 100), offsetof(xpu_stack, frames) + 3 * sizeof(uint64_t));
  EXPECT_EQ(frames.frames().size(), 3u);
  frames.Take(Stack(2, 3), 0);
  EXPECT_EQ(frames.frames().size(), 0u);
  frames.Take(Stack(1000, 1000), sizeof(xpu_stack));
  EXPECT_EQ(frames.frames().size(), static_cast<size_t>(XPU_MAX_FRAMES) + XPU_MAX_USER_FRAMES);
}

TEST(LossLedger, AProgramThatLiesHidesNoLosses) {
  LossLedger losses;
  losses.Add(LossKind::kWireTorn, UINT64_MAX);
  losses.Add(LossKind::kWireTorn, 2);
  losses.Add(LossKind::kSampleRingFull, 3);
  EXPECT_EQ(losses.total(LossKind::kWireTorn), UINT64_MAX);
  EXPECT_EQ(losses.total(), UINT64_MAX);
  EXPECT_EQ(losses.TakeNew()[1].count, UINT64_MAX);
  LossLedger both;
  both.AddTotals(losses);
  both.AddTotals(losses);
  EXPECT_EQ(both.total(LossKind::kWireTorn), UINT64_MAX);
}

TEST(LossLedger, AddsUpAndReportsNewLossesOnce) {
  LossLedger losses;
  losses.Add(LossKind::kWireTorn, 0);
  losses.Add(LossKind::kSampleRingFull, 3);
  losses.Add(LossKind::kSampleRingFull, 4);
  losses.Add(LossKind::kInjectDormant, 1, 9, InstanceId{5}, "because");
  auto entries = losses.TakeNew();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].kind, LossKind::kSampleRingFull);
  EXPECT_EQ(entries[0].count, 7u);
  EXPECT_EQ(entries[1].pid, 9u);
  EXPECT_EQ(entries[1].instance, InstanceId{5});
  EXPECT_EQ(entries[1].detail, "because");
  EXPECT_TRUE(losses.TakeNew().empty());
  EXPECT_EQ(losses.total(), 8u);
}

TEST(Summary, OneLineAndOneForEachLoss) {
  LossLedger losses;
  EXPECT_EQ(SummaryText({1234, 46285, "a.xpu"}, losses),
            "xpu-record: 1234 events, 0 losses, a.xpu, 45.2 KiB\n");
  losses.Add(LossKind::kSampleRingFull, 1);
  EXPECT_TRUE(SummaryText({1, 10, "a.xpu"}, losses)
                  .starts_with("xpu-record: 1 event, 1 loss, a.xpu, 10 B\n"));
  losses.Add(LossKind::kSampleRingFull, 6);
  losses.Add(LossKind::kInjectDormant, 1, 9, InstanceId{5}, "no libcupti");
  EXPECT_EQ(SummaryText({2, 10, "a.xpu"}, losses),
            "xpu-record: 2 events, 8 losses, a.xpu, 10 B\n"
            "xpu-record: sample_ring_full: 7 CPU samples dropped: the sample ring was full. Lower "
            "-F, or give xpu-record a free core.\n"
            "xpu-record: inject_dormant: 1 CUDA process in which recording did not start, or "
            "stopped early. no libcupti. Where CUPTI could not be used: xpu-record --check shows "
            "whether it is available; --yield-cupti records launches without it. If xpu-record "
            "could not keep up, give it a free core; do not stop it (SIGSTOP).\n");
}

// As xpu-report --strict tells them apart.
TEST(Summary, IncompleteStacksAreNotLosses) {
  LossLedger losses;
  losses.Add(LossKind::kStackCut, 1);
  EXPECT_EQ(SummaryText({5, 10, "a.xpu"}, losses),
            "xpu-record: 5 events, 0 losses, 1 note on stacks, a.xpu, 10 B\n"
            "xpu-record: notes on stacks: 1 stack_truncated; xpu-report explains them\n");
  losses.Add(LossKind::kPythonNotWalked, 2);
  losses.Add(LossKind::kCallLost, 1);
  losses.Add(LossKind::kInjectionUnknown, 1);  // a note
  const std::string text = SummaryText({5, 10, "a.xpu"}, losses);
  EXPECT_TRUE(
      text.starts_with("xpu-record: 5 events, 1 loss, 3 notes on stacks, a.xpu, 10 B\n"
                       "xpu-record: call_lost: 1 "))
      << text;
  EXPECT_TRUE(
      text.ends_with("\nxpu-record: notes on stacks: 1 stack_truncated, 2 python_not_walked; "
                     "xpu-report explains them\n"))
      << text;
}

TEST(Losses, LossesThatEventsShowAreNotStoredAgain) {
  LossLedger losses;
  losses.AddUnstored(LossKind::kInvalidTime, 3);
  EXPECT_EQ(losses.total(), 3u);
  EXPECT_TRUE(losses.TakeNew().empty());
}

TEST(Summary, Sizes) {
  EXPECT_EQ(SizeText(0), "0 B");
  EXPECT_EQ(SizeText(1023), "1023 B");
  EXPECT_EQ(SizeText(1024), "1.0 KiB");
  EXPECT_EQ(SizeText(1536), "1.5 KiB");
  EXPECT_EQ(SizeText((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(SizeText(uint64_t{5} << 30), "5.0 GiB");
}

TEST(ProcessStatus, ProcessesThatSleepOrHaveEndedDoNotRun) {
  EXPECT_TRUE(IsRunnable(::getpid()));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) R (b");
    ::close(ends[1]);
    char byte;
    (void)!::read(ends[0], &byte, 1);
    ::_exit(0);
  }
  while (IsRunnable(child)) ::usleep(1000);
  ::close(ends[1]);
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(IsRunnable(child));
}

TEST(Capabilities, Missing) {
  EXPECT_EQ(MissingCapabilities(0), "CAP_BPF and CAP_PERFMON");
  EXPECT_EQ(MissingCapabilities(uint64_t{1} << kCapBpf), "CAP_PERFMON");
  EXPECT_EQ(MissingCapabilities(uint64_t{1} << kCapPerfmon), "CAP_BPF");
  EXPECT_EQ(MissingCapabilities(uint64_t{1} << kCapSysAdmin), "");
  EXPECT_EQ(MissingCapabilities(uint64_t{1} << kCapBpf | uint64_t{1} << kCapPerfmon), "");
}

TEST(Capabilities, AreReadFromTheKernel) {
  auto status = ReadFile("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(EffectiveCapabilities(), StatusBits(*status, "CapEff"));
}

TEST(Capabilities, TheHintNamesThisProgram) {
  const std::string hint = HowToGetCapabilities(",cap_sys_ptrace");
  const std::string command = "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep ";
  ASSERT_NE(hint.find(command), std::string::npos) << hint;
  const std::string path = hint.substr(hint.find(command) + command.size());
  EXPECT_EQ(path, std::filesystem::read_symlink("/proc/self/exe"));
}

TEST(PerfEvent, CpuLists) {
  EXPECT_EQ(ParseCpuList("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCpuList("5"), std::vector<int>{5});
  EXPECT_EQ(ParseCpuList(""), std::vector<int>{});
  EXPECT_EQ(ParseCpuList("3-1"), std::vector<int>{});
}

TEST(KernelFeatures, ThoseInTheListAreLeftOut) {
  const auto may_use = [](KernelFeature feature, std::string_view left_out) {
    LeaveOutFeatures(left_out);
    return MayUse(feature);
  };
  EXPECT_FALSE(may_use(KernelFeature::kLostCount, "lost_count"));
  EXPECT_FALSE(may_use(KernelFeature::kLostCount, "table_walk,lost_count,"));
  EXPECT_TRUE(may_use(KernelFeature::kLostCount, "lost_counts,lost"));
  EXPECT_FALSE(may_use(KernelFeature::kMultiProbes, "table_walk,uprobe_multi"));
  EXPECT_FALSE(may_use(KernelFeature::kBuildIdRecords, "build_id_records"));
  EXPECT_TRUE(may_use(KernelFeature::kLostCount, ""));
}

TEST(Target, ExecFailures) {
  EXPECT_EQ(ExecFailure{ENOENT}.ExitStatus(), 127);
  EXPECT_EQ(ExecFailure{ENOTDIR}.ExitStatus(), 127);
  EXPECT_EQ(ExecFailure{EACCES}.ExitStatus(), 126);
  EXPECT_EQ(ExecFailure{ENOEXEC}.ExitStatus(), 126);
}

TEST(Environment, Variables) {
  std::vector<std::string> environment = {"A=1", "AB=2", "C="};
  EXPECT_EQ(FindVariable(environment, "A"), "1");
  EXPECT_EQ(FindVariable(environment, "C"), "");
  EXPECT_EQ(FindVariable(environment, "B"), std::nullopt);
  SetVariable(environment, "A", "3");
  EXPECT_EQ(environment, (std::vector<std::string>{"AB=2", "C=", "A=3"}));
}

TEST(Check, AttachingNeedsWhatYamaAsksFor) {
  constexpr uint64_t kMayTrace = uint64_t{1} << kCapSysPtrace;
  using State = Ability::State;
  EXPECT_EQ(AttachAbility("", 0).state, State::kOk);
  EXPECT_EQ(AttachAbility("0\n", 0).state, State::kOk);
  for (const char* scope : {"1\n", "2\n"}) {
    EXPECT_EQ(AttachAbility(scope, kMayTrace).state, State::kOk);
    const Ability without = AttachAbility(scope, 0);
    EXPECT_EQ(without.state, State::kAbsent);
    EXPECT_NE(without.hint.find("cap_sys_ptrace"), std::string::npos);
  }
  EXPECT_EQ(AttachAbility("3\n", kMayTrace).state, State::kAbsent);
}

TEST(Check, ProfilingNeedsRootWhereTheDriverSaysSo) {
  constexpr uint64_t kAdmin = uint64_t{1} << kCapSysAdmin;
  constexpr char kRestricted[] = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nX: 0\n";
  constexpr char kOpen[] = "RmProfilingAdminOnly: 0\n";
  using State = Ability::State;
  RecordOptions options;
  const auto states = [&](const char* parameters, uint64_t capabilities) {
    const auto abilities = ProfilingAbilities(parameters, capabilities, options);
    return std::pair(abilities.at(0).state, abilities.at(1).state);
  };
  EXPECT_EQ(states(kOpen, 0), std::pair(State::kOk, State::kOk));
  EXPECT_EQ(states(kRestricted, kAdmin), std::pair(State::kOk, State::kOk));
  EXPECT_EQ(states(kRestricted, 0), std::pair(State::kAbsent, State::kAbsent));
  EXPECT_NE(ProfilingAbilities(kRestricted, 0, options)
                .at(0)
                .hint.find("NVreg_RestrictProfilingToAdminUsers=0"),
            std::string::npos);
  for (const char* unknown : {"", "RmProfilingAdminOnly", "RmProfilingAdminOnly:\n"}) {
    EXPECT_EQ(states(unknown, kAdmin), std::pair(State::kAbsent, State::kAbsent)) << unknown;
  }
  options.gpu_metrics.counters = true;
  EXPECT_EQ(states(kRestricted, 0), std::pair(State::kMissing, State::kAbsent));
  options.gpu_samples.is_on = true;
  EXPECT_EQ(states(kRestricted, 0), std::pair(State::kMissing, State::kMissing));
  // The program takes the samples, without root's rights.
  options.user = "nobody";
  EXPECT_EQ(states(kRestricted, kAdmin), std::pair(State::kOk, State::kMissing));
  EXPECT_EQ(states(kOpen, kAdmin), std::pair(State::kOk, State::kOk));
}

TEST(Check, Lines) {
  EXPECT_EQ(AbilityText({"kernel", Ability::State::kOk, "6.18", ""}), "ok       kernel: 6.18\n");
  EXPECT_EQ(AbilityText({"x", Ability::State::kMissing, "no x", "get x"}),
            "missing  x: no x -- get x\n");
  EXPECT_EQ(AbilityText({"x", Ability::State::kAbsent, "no x", "get x"}),
            "absent   x: no x -- get x\n");
}

}  // namespace
}  // namespace xpu
