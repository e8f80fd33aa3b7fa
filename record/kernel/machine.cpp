#include "record/kernel/machine.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/perf_event.h"

namespace xpu {
namespace {

constexpr char kLockdownPath[] = "/sys/kernel/security/lockdown";

int ErrorOf(const UniqueFd& fd) { return fd ? 0 : errno; }

int TryRing() {
  return ErrorOf(UniqueFd(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xpu_ability", 0, 0,
                                         static_cast<uint32_t>(::getpagesize()), nullptr)));
}

template <size_t N>
int TryProgram(const bpf_insn (&program)[N]) {
  return ErrorOf(UniqueFd(
      bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "xpu_ability", "Dual BSD/GPL", program, N, nullptr)));
}

constexpr bpf_insn kReturnNothing[] = {
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};

int TryAtomics() {
  constexpr uint8_t kAtomic = 0xc0;  // BPF_ATOMIC, formerly BPF_XADD
  constexpr int32_t kExchange = 0xe1;
  const bpf_insn program[] = {
      {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 10, .src_reg = 0, .off = -8, .imm = 0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .src_reg = 0, .off = 0, .imm = 1},
      {.code = BPF_STX | kAtomic | BPF_DW,
       .dst_reg = 10,
       .src_reg = 1,
       .off = -8,
       .imm = kExchange},
      kReturnNothing[0],
      kReturnNothing[1]};
  return TryProgram(program);
}

int TryCookies() {
  const bpf_insn program[] = {{.code = BPF_JMP | BPF_CALL,
                               .dst_reg = 0,
                               .src_reg = 0,
                               .off = 0,
                               .imm = BPF_FUNC_get_attach_cookie},
                              kReturnNothing[0],
                              kReturnNothing[1]};
  return TryProgram(program);
}

int TryPerfEvent() {
  perf_event_attr attributes = PerfAttributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
  attributes.disabled = 1;
  return ErrorOf(OpenPerfEvent(attributes, 0, -1));
}

std::string TextOf(const char* path) {
  auto text = ReadFile(path);
  return text.ok() ? *std::move(text) : std::string();
}

// gVisor always reports the same release, and the date of a kernel of 2016.
bool IsGvisor(const std::string& version) {
  return version.find("-gvisor") != std::string::npos ||
         version.find("#1 SMP Sun Jan 10 15:06:54 PST 2016") != std::string::npos;
}

// Only the initial user namespace maps every id to itself.
bool IsUserNamespace(const std::string& map) {
  unsigned inside = 1, outside = 1, count = 0;
  return std::sscanf(map.c_str(), "%u %u %u", &inside, &outside, &count) != 3 || inside != 0 ||
         outside != 0 || count != UINT32_MAX;
}

bool IsRefusal(int error) { return error == EPERM || error == EACCES || error == ENOSYS; }

// Says who refuses the call, by what is known of the machine: the kernel returns the same errno for
// all of them.
Obstacle Refuser(const Machine& machine, const char* call, int error) {
  const std::string refused = Format("{}: {}: ", call, std::strerror(error));
  if (machine.is_gvisor) {
    return {refused + "this is gVisor (runsc), which has no BPF and no perf events",
            "record outside the sandbox; --gpu-only works inside it"};
  }
  if (machine.in_user_namespace) {
    return {refused + "the capabilities are those of a user namespace (a rootless container)",
            "record as root on the host; --gpu-only works inside the container"};
  }
  if (const std::string missing = MissingCapabilities(machine.capabilities); !missing.empty()) {
    return {refused + "without " + missing, HowToGetCapabilities()};
  }
  if (machine.lockdown == "confidentiality") {
    return {refused + "the kernel is locked down (confidentiality)",
            "boot with lockdown=integrity, or without Secure Boot"};
  }
  if (machine.has_seccomp_filter) {
    return {refused + "a seccomp filter forbids it, as is usual in containers",
            "docker run --security-opt seccomp=unconfined, or a profile that allows bpf and "
            "perf_event_open"};
  }
  if (error == ENOSYS) {
    return {refused + "the kernel was built without it",
            "a kernel with CONFIG_BPF_SYSCALL and CONFIG_PERF_EVENTS"};
  }
  return {refused + "a security module forbids it",
          "the kernel log says which one (SELinux, AppArmor, BPF)"};
}

std::optional<Obstacle> TooOld(const Machine& machine, int error, const char* what,
                               const char* since) {
  if (error == 0) return std::nullopt;
  return Obstacle{Format("BPF of Linux {} {}: {}", machine.release, what, std::strerror(error)),
                  Format("Linux {} or newer; --gpu-only records the GPU side alone", since)};
}

}  // namespace

std::string ChosenWord(const std::string& words) {
  const size_t open = words.find('['), close = words.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return words.substr(open + 1, close - open - 1);
}

Machine ExamineMachine() {
  Machine machine;
  utsname system{};
  ::uname(&system);
  machine.release = system.release;
  machine.capabilities = EffectiveCapabilities();
  machine.is_gvisor = IsGvisor(TextOf("/proc/version"));
  machine.in_user_namespace = IsUserNamespace(TextOf("/proc/self/uid_map"));
  machine.has_seccomp_filter = ::prctl(PR_GET_SECCOMP) == 2;
  machine.lockdown = ChosenWord(TextOf(kLockdownPath));
  machine.perf_paranoid = PerfParanoidLevel();
  machine.ring_error = TryRing();
  machine.program_error = TryProgram(kReturnNothing);
  machine.atomics_error = TryAtomics();
  machine.cookies_error = TryCookies();
  machine.perf_error = TryPerfEvent();
  machine.btf_error = ErrorOf(UniqueFd(::open(kBtfPath, O_RDONLY | O_CLOEXEC)));
  return machine;
}

std::optional<Obstacle> ObstacleToBpf(const Machine& machine) {
  for (const int error : {machine.ring_error, machine.program_error, machine.atomics_error}) {
    if (IsRefusal(error)) return Refuser(machine, "bpf", error);
  }
  if (auto old = TooOld(machine, machine.ring_error, "has no ring buffers", "5.12")) return old;
  if (auto old = TooOld(machine, machine.program_error, "has no programs on perf events", "5.12")) {
    return old;
  }
  if (auto old = TooOld(machine, machine.atomics_error, "has no atomic exchange", "5.12")) {
    return old;
  }
  if (machine.btf_error == 0) return std::nullopt;
  return Obstacle{
      Format("no kernel type information: {}: {}", kBtfPath, std::strerror(machine.btf_error)),
      "a kernel built with CONFIG_DEBUG_INFO_BTF=y, and /sys mounted in a container or "
      "chroot; --gpu-only needs neither"};
}

std::optional<Obstacle> ObstacleToProbes(const Machine& machine) {
  if (IsRefusal(machine.cookies_error)) return Refuser(machine, "bpf", machine.cookies_error);
  return TooOld(machine, machine.cookies_error, "does not report which probe was hit", "5.15");
}

std::optional<Obstacle> ObstacleToTracing(std::string_view yama_scope, uint64_t capabilities) {
  const char scope = yama_scope.empty() ? '0' : yama_scope.front();
  const bool may_trace = (capabilities >> kCapSysPtrace & 1) != 0;
  if (scope == '0' || (scope != '3' && may_trace)) return std::nullopt;
  return Obstacle{Format("kernel.yama.ptrace_scope is {}", scope),
                  scope == '3' ? "start the program under xpu-record: nothing can attach until the "
                                 "machine is started again"
                               : HowToGetCapabilities(",cap_sys_ptrace")};
}

std::optional<Obstacle> ObstacleToPerfEvents(const Machine& machine) {
  if (machine.perf_error == 0) return std::nullopt;
  if (!IsRefusal(machine.perf_error)) {
    return Obstacle{Format("perf_event_open: {}", std::strerror(machine.perf_error)), {}};
  }
  constexpr int kHighestOfLinux = 2;
  const bool refused_by_level = machine.perf_error != ENOSYS && !machine.is_gvisor &&
                                !machine.has_seccomp_filter &&
                                machine.perf_paranoid > kHighestOfLinux;
  if (!refused_by_level) return Refuser(machine, "perf_event_open", machine.perf_error);
  return Obstacle{Format("perf_event_open: {}: kernel.perf_event_paranoid is {}",
                         std::strerror(machine.perf_error), machine.perf_paranoid),
                  "run as root, or: sysctl kernel.perf_event_paranoid=2"};
}

}  // namespace xpu
