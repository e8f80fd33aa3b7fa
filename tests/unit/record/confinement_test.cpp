// --user: what the seccomp filter refuses, also on machines and in programs that this test does not
// run on and as: of 32 bits, of x32.
#include "record/target/confinement.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>

namespace xpu {
namespace {

constexpr uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint64_t kTioclinux = 0x541C;

// What the kernel would answer; 0, which kills, for what it would not take.
uint32_t Run(std::span<const sock_filter> program, const seccomp_data& call) {
  uint32_t accumulator = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (step.k > sizeof(call) - sizeof(accumulator) || step.k % 4 != 0) return 0;
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&call) + step.k,
                    sizeof(accumulator));
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= step.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += accumulator == step.k ? step.jt : step.jf;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        return 0;
    }
  }
  return 0;
}

uint32_t Answer(uint32_t arch, uint32_t number, uint64_t request) {
  seccomp_data call{};
  call.arch = arch;
  call.nr = static_cast<int>(number);
  call.args[1] = request;
  // The terminal may be at any descriptor, and the input anywhere.
  call.args[0] = call.args[2] = kTioclinux;
  return Run(TerminalInputFilter(), call);
}

TEST(ConfinementTest, TerminalInputIsRefusedHoweverIoctlIsCalled) {
  for (const uint64_t request : {uint64_t{TIOCSTI}, kTioclinux}) {
    for (const uint64_t upper : {uint64_t{0}, uint64_t{1} << 32, uint64_t{UINT32_MAX} << 32}) {
      EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, 16, upper | request), kEperm);
      EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, kX32Bit + 514, upper | request), kEperm);
      EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, kX32Bit + 16, upper | request), kEperm);
      EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, 514, upper | request), kEperm);
      EXPECT_EQ(Answer(AUDIT_ARCH_I386, 54, upper | request), kEperm);
    }
  }
}

TEST(ConfinementTest, AllOtherRequestsAndCallsAreAllowed) {
  for (const uint64_t request : {TIOCGWINSZ, TIOCSPGRP, TIOCSCTTY, TCGETS, TCSETS, 0, TIOCSTI + 1,
                                 TIOCSTI - 1, 0x541B, 0x541D}) {
    EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, 16, request), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, kX32Bit + 514, request), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Answer(AUDIT_ARCH_I386, 54, request), SECCOMP_RET_ALLOW);
  }
  for (uint32_t number = 0; number < 1000; ++number) {
    if (number != 16 && number != 514) {
      EXPECT_EQ(Answer(AUDIT_ARCH_X86_64, number, TIOCSTI), SECCOMP_RET_ALLOW) << number;
    }
    if (number != 54) {
      EXPECT_EQ(Answer(AUDIT_ARCH_I386, number, TIOCSTI), SECCOMP_RET_ALLOW) << number;
    }
    EXPECT_EQ(Answer(AUDIT_ARCH_AARCH64, number, TIOCSTI), SECCOMP_RET_ALLOW) << number;
  }
}

}  // namespace
}  // namespace xpu
