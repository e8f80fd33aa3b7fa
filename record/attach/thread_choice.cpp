#include "record/attach/thread_choice.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <sys/syscall.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/text.h"
#include "record/base/process_memory.h"
#include "record/base/process_status.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {
namespace {

// These end with EINTR when a tracer stops them (signal(7)). Some have numbers that older headers
// do not know.
constexpr long kEpollPwait2 = 441;
constexpr long kEndEarly[] = {
    SYS_epoll_wait, SYS_epoll_pwait,  kEpollPwait2, SYS_rt_sigtimedwait, SYS_semop,
    SYS_semtimedop, SYS_io_getevents, SYS_msgrcv,   SYS_msgsnd,          426 /* io_uring_enter */};
// Those of sockets end early where the socket has a time limit of its own (SO_RCVTIMEO). They have
// done nothing yet when they do.
constexpr long kMayEndEarly[] = {SYS_read,     SYS_readv,  SYS_recvfrom, SYS_recvmsg,
                                 SYS_recvmmsg, SYS_accept, SYS_accept4,  SYS_write,
                                 SYS_writev,   SYS_sendto, SYS_sendmsg};
// These go on by restart_syscall(2), with the rest of their time.
constexpr long kHaveTimeLimit[] = {SYS_poll, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex,
                                   SYS_restart_syscall};
// The parent of a vfork does not stop; others change what the process is.
constexpr long kExcludedCalls[] = {SYS_vfork,    SYS_clone, 435 /* clone3 */, SYS_execve,
                                   SYS_execveat, SYS_exit,  SYS_exit_group,   SYS_rt_sigsuspend,
                                   SYS_pause,    SYS_ptrace};
// The allocator and the C library's cache of stacks make them while they hold their locks.
constexpr long kMemoryCalls[] = {SYS_mmap,     SYS_munmap,  SYS_mremap,
                                 SYS_mprotect, SYS_madvise, SYS_brk};

template <size_t kCount>
bool Has(const long (&calls)[kCount], long call) {
  return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

constexpr uint16_t kSyscall = 0x050f;  // the instruction
constexpr uint32_t kMaxFrames = 512;
// pthread_create takes about 1 KB, a signal frame up to 12 KB.
constexpr uint64_t kStackNeeded = uint64_t{32} << 10;

// The stack of a stopped thread, read in pieces.
class StackReader {
 public:
  explicit StackReader(pid_t tid) : memory_(tid) {}

  bool Read(uint64_t address, uint64_t* value) {
    if (address - start_ > bytes_ || bytes_ - (address - start_) < sizeof(*value)) {
      start_ = address;
      bytes_ = memory_.ReadSome(address, piece_.data(), piece_.size());
      if (bytes_ < sizeof(*value)) {
        bytes_ = 0;
        return false;
      }
    }
    std::memcpy(value, piece_.data() + (address - start_), sizeof(*value));
    return true;
  }

 private:
  ProcessMemory memory_;
  std::array<std::byte, 4096> piece_;
  uint64_t start_ = 0;
  uint64_t bytes_ = 0;
};

// Looks rules up, and remembers whether a signal handler is in the stack.
struct RuleReader {
  TargetCode& code;
  bool has_handler = false;

  CodeKind Find(uint64_t address, UnwindRule* rule) {
    const CodeKind kind = code.FindRule(address, rule);
    has_handler = has_handler || (kind == CodeKind::kRule && rule->cfa == UnwindCfa::kSignal);
    return kind;
  }
};

// Whether the stack pointer is in the thread's own stack, not in a coroutine's or one for signals,
// and there is room below it. The C library keeps a thread's control block at the top of its stack.
bool HasOwnStack(const user_regs_struct& registers, const TargetCode& code) {
  const ProcessMapping* stack = code.Find(registers.rsp);
  if (stack == nullptr) return false;
  if (stack->path == "[stack]") return registers.rsp - stack->start_address >= kStackNeeded / 2;
  return registers.rsp - stack->start_address >= kStackNeeded &&
         registers.fs_base > registers.rsp && registers.fs_base < stack->end_address;
}

bool HasPendingSignal(pid_t tid, uint64_t mask) {
  auto status = ReadFile(Format("/proc/{}/status", tid));
  if (!status.ok()) return true;
  const uint64_t pending = StatusBits(*status, "SigPnd") | StatusBits(*status, "ShdPnd");
  return (pending & ~mask) != 0;
}

bool IsAtSystemCall(const TracedThread& thread, const user_regs_struct& at) {
  uint16_t code = 0;
  return ProcessMemory(thread.tid()).Read(at.rip, &code, sizeof(code)) && code == kSyscall &&
         (Has(kEndEarly, static_cast<long>(at.rax)) ||
          Has(kMayEndEarly, static_cast<long>(at.rax)));
}

}  // namespace

Disturbance DisturbanceOf(std::string_view text) {
  if (text.starts_with("running")) return Disturbance::kRunning;
  const auto call = ParseNumber<long>(text.substr(0, text.find_first_of(" \n")));
  if (!call || *call < 0 || Has(kExcludedCalls, *call)) return Disturbance::kExcluded;
  if (Has(kEndEarly, *call)) return Disturbance::kEndsEarly;
  return Has(kHaveTimeLimit, *call) ? Disturbance::kTimeLimit : Disturbance::kNone;
}

bool HasChild(pid_t pid, pid_t tid) {
  auto children = ReadFile(Format("/proc/{}/task/{}/children", pid, tid));
  return children.ok() && !children->empty();
}

std::vector<ThreadToBorrow> ThreadsToTry(pid_t pid) {
  std::vector<ThreadToBorrow> threads;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(Format("/proc/{}/task", pid), failed), end;
       !failed && at != end; at.increment(failed)) {
    const auto tid = ParseNumber<pid_t>(at->path().filename().native());
    if (!tid) continue;
    const std::string directory = at->path().native();
    if (ReadComm(directory + "/comm") == "xpu-inject") continue;
    auto text = ReadFile(directory + "/syscall");
    if (!text.ok()) continue;
    Disturbance disturbance = DisturbanceOf(*text);
    if (HasChild(pid, *tid)) disturbance = std::max(disturbance, Disturbance::kHasChild);
    threads.push_back({*tid, disturbance});
  }
  std::stable_sort(threads.begin(), threads.end(),
                   [](const auto& a, const auto& b) { return a.disturbance < b.disturbance; });
  return threads;
}

void RepeatEndedCall(const TracedThread& thread, ThreadRegisters& registers) {
  user_regs_struct& at = registers.general;
  const auto call = static_cast<int64_t>(at.orig_rax);
  if (call == SYS_restart_syscall) {
    // It was stopped before. The instructions that lead to the call say which one it is.
    struct __attribute__((packed)) {
      uint8_t move_to_eax;
      uint32_t number;
      uint16_t system_call;
    } code{};
    if (ProcessMemory(thread.tid()).Read(at.rip - sizeof(code), &code, sizeof(code)) &&
        code.move_to_eax == 0xb8 && code.system_call == kSyscall) {
      at.orig_rax = code.number;
    }
    return;
  }
  if (!Has(kEndEarly, call) && !Has(kMayEndEarly, call)) return;
  if (static_cast<int64_t>(at.rax) != -EINTR) return;
  if (HasPendingSignal(thread.tid(), registers.signal_mask)) return;
  RepeatCall(at);
  thread.WriteRegisters(at);
}

Unsuitable WhyUnsuitable(const TracedThread& thread, const ThreadRegisters& registers,
                         TargetCode& code) {
  const user_regs_struct& at = registers.general;
  const auto call = static_cast<int64_t>(at.orig_rax);
  // Or it was, and makes the call again.
  const bool in_call = call >= 0 || IsAtSystemCall(thread, at);
  if (call == SYS_restart_syscall) return {"in a system call that was interrupted before"};
  if (Has(kExcludedCalls, call) || Has(kMemoryCalls, call)) {
    return {"in a system call that may hold a lock"};
  }
  if (HasPendingSignal(thread.tid(), registers.signal_mask)) return {"a signal is pending"};
  if (thread.IsInRestartableSequence()) return {"in a restartable sequence"};
  if (code.Find(at.rip) == nullptr && !code.Refresh().ok()) return {"its mappings are unreadable"};
  if (!HasOwnStack(at, code)) return {"on a stack of another kind, or with little room left"};
  if (!in_call && code.IsInLibc(at.rip)) return {"running in the C library"};
  StackReader memory(thread.tid());
  RuleReader rules{.code = code};
  uint64_t frames[kMaxFrames];
  const WalkResult walk = WalkStack({at.rip, at.rsp, at.rbp}, memory, rules, frames, kMaxFrames);
  if ((walk.flags & kWalkNotReady) != 0) return {"its stack is not known yet", true};
  if (rules.has_handler) return {"in a signal handler"};
  if (walk.stop != WalkStop::kComplete) return {"its stack cannot be unwound"};
  bool has_program_frame = false;
  for (uint32_t i = 0; i < walk.count; ++i) {
    const uint64_t address = frames[i] - (i == 0 ? 0 : 1);
    if (const char* why = code.WhyUnsafe(address)) return {why};
    has_program_frame = has_program_frame || !code.IsInLibc(address);
  }
  // Its thread-local storage may be incomplete.
  if (!has_program_frame) return {"starting or ending"};
  return {};
}

}  // namespace xpu
