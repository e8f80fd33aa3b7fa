// What stands in the way on machines that are not at hand: each cause by itself.
#include "record/kernel/machine.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "record/kernel/capabilities.h"

namespace xpu {
namespace {

Machine Good() {
  Machine machine;
  machine.release = "6.1.0";
  machine.capabilities = uint64_t{1} << kCapBpf | uint64_t{1} << kCapPerfmon;
  machine.lockdown = "none";
  machine.perf_paranoid = 2;
  return machine;
}

Machine Refused(int error = EPERM) {
  Machine machine = Good();
  machine.ring_error = machine.program_error = machine.atomics_error = error;
  machine.cookies_error = machine.perf_error = error;
  return machine;
}

std::string Text(const std::optional<Obstacle>& obstacle) {
  return obstacle ? obstacle->what + " -- " + obstacle->hint : "";
}

void ExpectBpf(const Machine& machine, const std::string& what, const std::string& hint) {
  const auto obstacle = ObstacleToBpf(machine);
  ASSERT_TRUE(obstacle);
  EXPECT_NE(obstacle->what.find(what), std::string::npos) << obstacle->what;
  EXPECT_NE(obstacle->hint.find(hint), std::string::npos) << obstacle->hint;
}

TEST(Machine, NoObstacleWhereAllAttemptsWork) {
  EXPECT_EQ(Text(ObstacleToBpf(Good())), "");
  EXPECT_EQ(Text(ObstacleToProbes(Good())), "");
  EXPECT_EQ(Text(ObstacleToPerfEvents(Good())), "");
  // What works is not doubted.
  Machine odd = Good();
  odd.capabilities = 0;
  odd.has_seccomp_filter = odd.is_gvisor = odd.in_user_namespace = true;
  odd.lockdown = "confidentiality";
  odd.perf_paranoid = 4;
  EXPECT_EQ(Text(ObstacleToBpf(odd)), "");
  EXPECT_EQ(Text(ObstacleToPerfEvents(odd)), "");
}

TEST(Machine, ARefusalIsNoOldKernel) {
  Machine machine = Good();
  machine.capabilities = 0;
  machine.cookies_error = EPERM;
  EXPECT_NE(Text(ObstacleToProbes(machine)).find("without CAP_BPF and CAP_PERFMON -- run as root"),
            std::string::npos);
  machine.cookies_error = EINVAL;
  EXPECT_NE(Text(ObstacleToProbes(machine)).find("Linux 5.15 or newer"), std::string::npos);
}

TEST(Machine, TheRefusingPartIsNamed) {
  Machine machine = Refused();
  ExpectBpf(machine, "bpf: Operation not permitted: a security module forbids it", "SELinux");
  machine.has_seccomp_filter = true;
  ExpectBpf(machine, "a seccomp filter forbids it", "seccomp=unconfined");
  machine.lockdown = "confidentiality";
  ExpectBpf(machine, "locked down (confidentiality)", "lockdown=integrity");
  machine.capabilities = uint64_t{1} << kCapBpf;
  ExpectBpf(machine, "without CAP_PERFMON", "sudo setcap cap_bpf,cap_perfmon+ep");
  machine.in_user_namespace = true;
  ExpectBpf(machine, "those of a user namespace", "root on the host");
  machine.is_gvisor = true;
  ExpectBpf(machine, "gVisor (runsc)", "outside the sandbox");
  EXPECT_NE(Text(ObstacleToPerfEvents(machine)).find("gVisor"), std::string::npos);
}

TEST(Machine, NotInThisKernel) {
  ExpectBpf(Refused(ENOSYS), "bpf: Function not implemented: the kernel was built without it",
            "CONFIG_BPF_SYSCALL");
  Machine machine = Good();
  machine.cookies_error = EINVAL;
  EXPECT_EQ(Text(ObstacleToBpf(machine)), "");
  EXPECT_EQ(
      Text(ObstacleToProbes(machine)),
      "BPF of Linux 6.1.0 does not report which probe was hit: Invalid argument -- Linux 5.15 "
      "or newer; --gpu-only records the GPU side alone");
  machine.atomics_error = EINVAL;
  ExpectBpf(machine, "BPF of Linux 6.1.0 has no atomic exchange", "Linux 5.12 or newer");
  machine.ring_error = EINVAL;
  ExpectBpf(machine, "BPF of Linux 6.1.0 has no ring buffers", "Linux 5.12 or newer");
}

TEST(Machine, Types) {
  Machine machine = Good();
  machine.btf_error = ENOENT;
  ExpectBpf(machine, "/sys/kernel/btf/vmlinux: No such file or directory",
            "CONFIG_DEBUG_INFO_BTF=y");
}

TEST(Machine, LevelsOfParanoia) {
  Machine machine = Refused(EACCES);
  machine.perf_paranoid = 4;
  EXPECT_EQ(Text(ObstacleToPerfEvents(machine)),
            "perf_event_open: Permission denied: kernel.perf_event_paranoid is 4 -- run as root, "
            "or: sysctl kernel.perf_event_paranoid=2");
  machine.perf_paranoid = 2;
  machine.capabilities = 0;
  EXPECT_NE(Text(ObstacleToPerfEvents(machine)).find("without CAP_BPF and CAP_PERFMON"),
            std::string::npos);
  machine.perf_error = ENODEV;
  EXPECT_EQ(Text(ObstacleToPerfEvents(machine)), "perf_event_open: No such device -- ");
}

TEST(Machine, ChosenWord) {
  EXPECT_EQ(ChosenWord("none [integrity] confidentiality\n"), "integrity");
  EXPECT_EQ(ChosenWord("[none] integrity"), "none");
  EXPECT_EQ(ChosenWord(""), "");
  EXPECT_EQ(ChosenWord("]["), "");
}

}  // namespace
}  // namespace xpu
