#include "record/attach/seccomp_filter.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

struct NamedCall {
  int number;
  const char* name;
};
#define XPU_CALL(name) \
  { SYS_##name, #name }
constexpr NamedCall kCalls[] = {
    XPU_CALL(mmap),      XPU_CALL(munmap),          XPU_CALL(mprotect),        XPU_CALL(madvise),
    XPU_CALL(clone3),    XPU_CALL(clone),           XPU_CALL(set_robust_list), XPU_CALL(rseq),
    XPU_CALL(exit),      XPU_CALL(rt_sigprocmask),  XPU_CALL(rt_sigreturn),    XPU_CALL(futex),
    XPU_CALL(nanosleep), XPU_CALL(clock_nanosleep), XPU_CALL(memfd_create),    XPU_CALL(write),
    XPU_CALL(read),      XPU_CALL(pread64),         XPU_CALL(openat),          XPU_CALL(newfstatat),
    XPU_CALL(fstat),     XPU_CALL(close),           XPU_CALL(fcntl),           XPU_CALL(socketpair),
    XPU_CALL(sendto),    XPU_CALL(recvfrom),        XPU_CALL(recvmsg),         XPU_CALL(poll),
    XPU_CALL(getpid),    XPU_CALL(gettid),          XPU_CALL(prctl),           XPU_CALL(getrandom),
    XPU_CALL(prlimit64), XPU_CALL(ioctl),           XPU_CALL(sched_yield),     XPU_CALL(getdents64),
    XPU_CALL(tgkill),    XPU_CALL(mremap),
};
// The library does without it where it fails.
constexpr NamedCall kMayFail = XPU_CALL(process_vm_readv);
#undef XPU_CALL

bool IsAllowed(uint32_t action) {
  const uint32_t kind = action & SECCOMP_RET_ACTION_FULL;
  return kind == SECCOMP_RET_ALLOW || kind == SECCOMP_RET_LOG;
}

std::optional<uint32_t> Load(const seccomp_data& call, uint32_t offset) {
  uint32_t value = 0;
  if (offset % sizeof(value) != 0 || offset > sizeof(call) - sizeof(value)) return std::nullopt;
  std::memcpy(&value, reinterpret_cast<const char*>(&call) + offset, sizeof(value));
  return value;
}

// nullopt: no such operation.
std::optional<uint32_t> Calculate(uint16_t operation, uint32_t a, uint32_t b) {
  switch (operation) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b == 0 ? 0 : a / b;
    case BPF_OR:
      return a | b;
    case BPF_AND:
      return a & b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return b < 32 ? a << b : 0;
    case BPF_RSH:
      return b < 32 ? a >> b : 0;
    case BPF_NEG:
      return 0 - a;
    default:
      return std::nullopt;
  }
}

std::optional<bool> Compare(uint16_t operation, uint32_t a, uint32_t b) {
  switch (operation) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JSET:
      return (a & b) != 0;
    default:
      return std::nullopt;
  }
}

Error Forbids(const std::string& call) {
  return Error{ErrorKind::kUnsupported,
               Format("its seccomp filter does not allow {}, which the library needs", call),
               "start the program under xpu-record, or allow the call in the filter"};
}

}  // namespace

std::optional<uint32_t> RunSeccompFilter(const std::vector<sock_filter>& filter,
                                         const seccomp_data& call) {
  uint32_t a = 0, x = 0;
  std::array<uint32_t, BPF_MEMWORDS> scratch{};
  // Jumps lead only forward, so it ends.
  for (size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& instruction = filter[at];
    const uint32_t k = instruction.k;
    const uint32_t operand = BPF_SRC(instruction.code) == BPF_X ? x : k;
    switch (BPF_CLASS(instruction.code)) {
      case BPF_LD:
      case BPF_LDX: {
        uint32_t& to = BPF_CLASS(instruction.code) == BPF_LD ? a : x;
        const uint16_t mode = BPF_MODE(instruction.code);
        if (mode == BPF_ABS) {
          const auto value = Load(call, k);
          if (!value) return std::nullopt;
          to = *value;
        } else if (mode == BPF_IMM) {
          to = k;
        } else if (mode == BPF_LEN) {
          to = sizeof(call);
        } else if (mode == BPF_MEM && k < scratch.size()) {
          to = scratch.at(k);
        } else {
          return std::nullopt;
        }
        break;
      }
      case BPF_ST:
      case BPF_STX:
        if (k >= scratch.size()) return std::nullopt;
        scratch.at(k) = BPF_CLASS(instruction.code) == BPF_ST ? a : x;
        break;
      case BPF_ALU: {
        const auto result = Calculate(BPF_OP(instruction.code), a, operand);
        if (!result) return std::nullopt;
        a = *result;
        break;
      }
      case BPF_JMP: {
        if (BPF_OP(instruction.code) == BPF_JA) {
          at += k;
          break;
        }
        const auto result = Compare(BPF_OP(instruction.code), a, operand);
        if (!result) return std::nullopt;
        at += *result ? instruction.jt : instruction.jf;
        break;
      }
      case BPF_RET:
        return BPF_RVAL(instruction.code) == BPF_A ? a : k;
      case BPF_MISC:
        (BPF_MISCOP(instruction.code) == BPF_TAX ? x : a) =
            BPF_MISCOP(instruction.code) == BPF_TAX ? a : x;
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string ForbiddenCall(const std::vector<sock_filter>& filter) {
  const auto action_for = [&](const NamedCall& named) {
    seccomp_data call{};
    call.nr = named.number;
    call.arch = AUDIT_ARCH_X86_64;
    return RunSeccompFilter(filter, call);
  };
  const auto may_fail = action_for(kMayFail);
  const bool fails = may_fail && (*may_fail & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
  if (!fails && !(may_fail && IsAllowed(*may_fail))) return kMayFail.name;
  for (const NamedCall& named : kCalls) {
    const auto action = action_for(named);
    if (action && IsAllowed(*action)) continue;
    // The C library falls back to clone where the kernel does not know clone3.
    if (action && named.number == SYS_clone3 &&
        *action == (SECCOMP_RET_ERRNO | static_cast<uint32_t>(ENOSYS))) {
      continue;
    }
    return named.name;
  }
  return {};
}

Status CheckSeccomp(const TracedThread& thread) {
  auto status = ReadFile(Format("/proc/{}/status", thread.tid()));
  if (!status.ok()) return status.error();
  const std::string_view mode = StatusField(*status, "Seccomp");
  if (mode.empty() || mode == "0") return Ok();
  if (mode == "1") return Forbids("any system call (strict mode)");
  constexpr int kGetFilter = 0x420c;  // PTRACE_SECCOMP_GET_FILTER
  const auto get = [&](uint64_t index, sock_filter* to) {
    return ::ptrace(static_cast<__ptrace_request>(kGetFilter), thread.tid(), index, to);
  };
  for (uint64_t index = 0;; ++index) {
    const long count = get(index, nullptr);
    if (count < 0 && errno == ENOENT && index > 0) return Ok();
    if (count < 0) {
      return Error{ErrorKind::kPermission,
                   Format("its seccomp filter cannot be read: {}", std::strerror(errno)),
                   "run xpu-record as root, outside of containers and filters, or start the "
                   "program under xpu-record"};
    }
    std::vector<sock_filter> filter(static_cast<size_t>(count));
    if (get(index, filter.data()) != count) continue;
    if (const std::string call = ForbiddenCall(filter); !call.empty()) return Forbids(call);
  }
}

}  // namespace xpu
