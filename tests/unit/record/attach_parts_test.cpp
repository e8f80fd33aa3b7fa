// The parts of an attach that need no other process.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "record/attach/attach_turns.h"
#include "record/attach/seccomp_filter.h"
#include "record/attach/signal_frame.h"
#include "record/attach/thread_choice.h"

namespace xpu {
namespace {

sock_filter Statement(int code, uint32_t k) { return {static_cast<uint16_t>(code), 0, 0, k}; }
sock_filter Jump(int code, uint32_t k, uint8_t yes, uint8_t no) {
  return {static_cast<uint16_t>(code), yes, no, k};
}

// Allows everything but one call.
std::vector<sock_filter> FilterWithout(long call, uint32_t answer) {
  return {Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          Jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
          Statement(BPF_RET | BPF_K, answer), Statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

TEST(AttachSeccomp, ForbiddenCallIsNamed) {
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS)),
            "memfd_create");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_socketpair, SECCOMP_RET_ERRNO | 1)), "socketpair");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_mmap, SECCOMP_RET_TRAP)), "mmap");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_mmap, SECCOMP_RET_LOG)), "");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_swapon, SECCOMP_RET_KILL_PROCESS)), "");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_tgkill, SECCOMP_RET_KILL_PROCESS)), "tgkill");
  // Which may fail, but not end the program.
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM)), "");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_process_vm_readv, SECCOMP_RET_KILL_PROCESS)),
            "process_vm_readv");
  // glibc then uses clone.
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS)), "");
  EXPECT_EQ(ForbiddenCall(FilterWithout(SYS_clone3, SECCOMP_RET_ERRNO | EPERM)), "clone3");
}

TEST(AttachSeccomp, FilterIsEvaluatedAsTheKernelDoes) {
  seccomp_data call{};
  call.nr = 7;
  call.arch = AUDIT_ARCH_X86_64;
  call.args[0] = 0x1122334455667788;
  const auto run = [&](std::vector<sock_filter> filter) { return RunSeccompFilter(filter, call); };
  constexpr int kReturnA = BPF_RET | BPF_A;
  EXPECT_EQ(run({Statement(BPF_LD | BPF_W | BPF_ABS, 20), Statement(kReturnA, 0)}), 0x11223344u);
  EXPECT_EQ(run({Statement(BPF_LD | BPF_IMM, 5), Statement(BPF_MISC | BPF_TAX, 0),
                 Statement(BPF_LD | BPF_IMM, 7), Statement(BPF_ALU | BPF_MUL | BPF_X, 0),
                 Statement(BPF_ST, 3), Statement(BPF_LD | BPF_IMM, 0),
                 Statement(BPF_LD | BPF_MEM, 3), Statement(kReturnA, 0)}),
            35u);
  EXPECT_EQ(run({Statement(BPF_JMP | BPF_JA, 1), Statement(BPF_RET | BPF_K, 1),
                 Statement(BPF_RET | BPF_K, 2)}),
            2u);
  // Beyond the data, beyond the program, no program.
  EXPECT_EQ(run({Statement(BPF_LD | BPF_W | BPF_ABS, 64), Statement(kReturnA, 0)}), std::nullopt);
  EXPECT_EQ(run({Statement(BPF_JMP | BPF_JA, UINT32_MAX), Statement(kReturnA, 0)}), std::nullopt);
  EXPECT_EQ(run({Statement(BPF_LD | BPF_MEM, 16), Statement(kReturnA, 0)}), std::nullopt);
  EXPECT_EQ(run({}), std::nullopt);
}

ThreadRegisters ThreadAt(uint64_t stack) {
  ThreadRegisters thread;
  thread.general.rsp = stack;
  thread.general.rip = 0x401000;
  thread.general.cs = 0x33;
  thread.general.ss = 0x2b;
  thread.general.orig_rax = UINT64_MAX;
  thread.signal_mask = 0x1234;
  thread.vectors.resize(4096);
  const uint64_t features = 3;  // x87 and SSE
  std::memcpy(thread.vectors.data() + 464, &features, sizeof(features));
  return thread;
}

TEST(AttachFrame, LiesBelowTheRedZoneAndHoldsTheWayBack) {
  constexpr uint64_t kStack = 0x7ffff0000;
  const ThreadRegisters thread = ThreadAt(kStack);
  const auto frame = MakeSignalFrame(thread, 0x7f0000001000);
  ASSERT_TRUE(frame);
  EXPECT_LE(frame->address + frame->bytes.size(), kStack - 128);
  EXPECT_EQ((frame->return_slot + 8) % 16, 0u);
  uint64_t restorer = 0;
  std::memcpy(&restorer, frame->bytes.data() + (frame->return_slot - frame->address), 8);
  EXPECT_EQ(restorer, 0x7f0000001000u);
  ucontext_t context;
  std::memcpy(&context, frame->bytes.data() + (frame->return_slot + 8 - frame->address),
              sizeof(context));
  EXPECT_EQ(context.uc_mcontext.gregs[REG_RIP], 0x401000);
  EXPECT_EQ(static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]), kStack);
  EXPECT_EQ(reinterpret_cast<uint64_t>(context.uc_mcontext.fpregs) % 64, 0u);
  const user_regs_struct call = RegistersForCall(thread, *frame, 0x5000, {1, 2, 3});
  EXPECT_EQ(call.rip, 0x5000u);
  EXPECT_EQ(call.rsp, frame->return_slot);
  EXPECT_EQ(call.rdx, 3u);
  EXPECT_EQ(call.orig_rax, UINT64_MAX);
}

TEST(AttachFrame, InterruptedCallBeginsAgain) {
  user_regs_struct registers{};
  registers.rip = 0x1002;
  registers.orig_rax = SYS_read;
  for (const int64_t error : {-512, -513, -514}) {
    registers.rax = static_cast<uint64_t>(error);
    EXPECT_EQ(InterruptedCallOf(registers), InterruptedCall::kBeginAgain);
    EXPECT_EQ(BeginAgain(registers).rip, 0x1000u);
    EXPECT_EQ(BeginAgain(registers).rax, static_cast<uint64_t>(SYS_read));
  }
  registers.rax = static_cast<uint64_t>(-516);
  EXPECT_EQ(InterruptedCallOf(registers), InterruptedCall::kGoOn);
  registers.rax = 10;
  EXPECT_EQ(InterruptedCallOf(registers), InterruptedCall::kNone);
  EXPECT_EQ(BeginAgain(registers).rip, 0x1002u);
}

TEST(AttachChoice, WaitsThatAStopDoesNotDisturbComeFirst) {
  EXPECT_EQ(DisturbanceOf("0 0x0 0x7f 0x1 0x0 0x0 0x0 0x7ffd 0x7f01\n"), Disturbance::kNone);
  EXPECT_EQ(DisturbanceOf("35 0x7f 0x0"), Disturbance::kTimeLimit);
  EXPECT_EQ(DisturbanceOf("running\n"), Disturbance::kRunning);
  EXPECT_EQ(DisturbanceOf("232 0x4 0x7f"), Disturbance::kEndsEarly);
  EXPECT_EQ(DisturbanceOf("58 0x4"), Disturbance::kExcluded);
  EXPECT_EQ(DisturbanceOf("-1 0x7ffd 0x7f01\n"), Disturbance::kExcluded);
  EXPECT_EQ(DisturbanceOf(""), Disturbance::kExcluded);
}

AttachJob JobOf(pid_t pid) {
  AttachJob job;
  job.target.pid = pid;
  return job;
}

// More processes of a cgroup than there are turns.
void AddMany(AttachTurns& turns, uint32_t user, const std::string& cgroup) {
  for (pid_t pid = 1; pid <= 100; ++pid) turns.Add(user, cgroup, JobOf(pid));
}

// Turns that begin before one has to wait for the end of another.
std::vector<AttachTurns::Turn> BeginAll(AttachTurns& turns) {
  std::vector<AttachTurns::Turn> begun;
  uint64_t next_ns = 0;
  while (auto turn = turns.Begin(1, &next_ns)) begun.push_back(*std::move(turn));
  EXPECT_EQ(next_ns, UINT64_MAX);  // none is due later
  return begun;
}

TEST(AttachTurns, UserWithManyProcessesLeavesTurnsToOthers) {
  AttachTurns turns;
  for (int cgroup = 0; cgroup < 100; ++cgroup) AddMany(turns, 1, std::to_string(cgroup));
  EXPECT_EQ(BeginAll(turns).size(), AttachTurns::kMost / 2);
  // And so does each further one, until few are left.
  AddMany(turns, 2, "");
  EXPECT_EQ(BeginAll(turns).size(), AttachTurns::kMost / 4);
  AddMany(turns, 3, "");
  EXPECT_EQ(BeginAll(turns).size(), AttachTurns::kMost / 8);
}

TEST(AttachTurns, CgroupLeavesHalfOfItsUsersTurnsToOthers) {
  AttachTurns turns;
  AddMany(turns, 1, "many");
  EXPECT_EQ(BeginAll(turns).size(), AttachTurns::kMost / 4);
  turns.Add(1, "one", JobOf(1000));
  const std::vector<AttachTurns::Turn> begun = BeginAll(turns);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun.front().job.target.pid, 1000);
}

TEST(AttachTurns, UserWithFewestTurnsIsNext) {
  AttachTurns turns;
  AddMany(turns, 1, "");
  std::vector<AttachTurns::Turn> begun = BeginAll(turns);
  turns.Add(2, "", JobOf(1000));
  turns.End(std::move(begun.back()));
  uint64_t next_ns = 0;
  const auto turn = turns.Begin(1, &next_ns);
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->job.target.pid, 1000);
}

}  // namespace
}  // namespace xpu
