#include "record/attach/traced_thread.h"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_memory.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// The XSAVE area is 2.5 KB with AVX-512 and 11 KB with AMX.
constexpr size_t kMaxVectorBytes = size_t{64} << 10;
// A stop comes within microseconds if the thread runs or sleeps; otherwise the CPU is not burnt.
constexpr int kSpins = 20;
constexpr long kPauseNs = 20'000;
constexpr uint64_t kRunnableNs = 5'000'000'000;

// The constants of <sys/ptrace.h> and <linux/ptrace.h> are of different types, so plain numbers.
long Ptrace(int request, pid_t tid, uint64_t address, void* data) {
  return ::ptrace(static_cast<__ptrace_request>(request), tid, address, data);
}

bool IsFault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGTRAP || signal == SIGSYS;
}

bool SleepsUninterruptibly(pid_t tid) {
  auto status = ReadFile(Format("/proc/{}/status", tid));
  return status.ok() && StatusField(*status, "State").starts_with("D");
}

}  // namespace

Result<TracedThread> TracedThread::Seize(pid_t tid) {
  if (Ptrace(PTRACE_SEIZE, tid, 0, reinterpret_cast<void*>(PTRACE_O_TRACESYSGOOD)) != 0) {
    return SystemError(Format("ptrace of thread {}", tid), errno);
  }
  return TracedThread(tid);
}

void TracedThread::Detach() {
  if (tid_ != 0) Ptrace(PTRACE_DETACH, tid_, 0, nullptr);
  tid_ = 0;
}

TracedThread::Stop TracedThread::Wait(uint64_t timeout_ns, bool wants_system_call) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ns;
  for (int tries = 0;; ++tries) {
    int status = 0;
    const pid_t waited = ::waitpid(tid_, &status, __WALL | WNOHANG);
    if (waited < 0 && errno != EINTR) return Stop::kGone;
    if (waited == 0) {
      if (MonotonicNs() >= deadline_ns) return Stop::kTimedOut;
      // sched_yield would give the CPU to other work for milliseconds.
      const timespec pause{0, kPauseNs};
      if (tries >= kSpins) ::nanosleep(&pause, nullptr);
      continue;
    }
    if (waited < 0) continue;
    if (!WIFSTOPPED(status)) return Stop::kGone;
    const int signal = WSTOPSIG(status);
    if (status >> 16 == PTRACE_EVENT_STOP) {
      return signal == SIGTRAP ? Stop::kInterrupted : Stop::kGroupStopped;
    }
    if (signal == (SIGTRAP | 0x80)) return Stop::kSystemCall;
    // While a call is made on it, only what cannot be blocked arrives.
    if (wants_system_call && IsFault(signal)) return Stop::kFault;
    const int request = wants_system_call ? PTRACE_SYSCALL : PTRACE_CONT;
    if (Ptrace(request, tid_, 0, reinterpret_cast<void*>(static_cast<uintptr_t>(signal))) != 0) {
      return Stop::kGone;
    }
  }
}

TracedThread::Stop TracedThread::Interrupt(uint64_t timeout_ns) {
  if (Ptrace(PTRACE_INTERRUPT, tid_, 0, nullptr) != 0) return Stop::kGone;
  const Stop stop = Wait(timeout_ns, false);
  // Otherwise it stops as soon as it gets a CPU, and a call that ends early may have ended already.
  return stop == Stop::kTimedOut && !SleepsUninterruptibly(tid_) ? Wait(kRunnableNs, false) : stop;
}

TracedThread::Stop TracedThread::RunToSystemCall(uint64_t timeout_ns) {
  if (Ptrace(PTRACE_SYSCALL, tid_, 0, nullptr) != 0) return Stop::kGone;
  return Wait(timeout_ns, true);
}

TracedThread::Stop TracedThread::FinishCanceledCall(uint64_t timeout_ns) {
  if (Ptrace(PTRACE_INTERRUPT, tid_, 0, nullptr) != 0) return Stop::kGone;
  if (Ptrace(PTRACE_CONT, tid_, 0, nullptr) != 0) return Stop::kGone;
  return Wait(timeout_ns, false);
}

bool TracedThread::ReadRegisters(user_regs_struct& registers) const {
  iovec part{&registers, sizeof(registers)};
  constexpr uint64_t kLongMode = 0x33;  // the code segment of 64-bit programs
  return Ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &part) == 0 &&
         part.iov_len == sizeof(registers) && registers.cs == kLongMode;
}

bool TracedThread::WriteRegisters(const user_regs_struct& registers) const {
  iovec part{const_cast<user_regs_struct*>(&registers), sizeof(registers)};
  return Ptrace(PTRACE_SETREGSET, tid_, NT_PRSTATUS, &part) == 0;
}

bool TracedThread::ReadVectors(std::vector<std::byte>& area) const {
  area.resize(kMaxVectorBytes);
  iovec part{area.data(), area.size()};
  if (Ptrace(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, &part) != 0) return false;
  area.resize(part.iov_len);
  return true;
}

bool TracedThread::WriteVectors(const std::vector<std::byte>& area) const {
  iovec part{const_cast<std::byte*>(area.data()), area.size()};
  return Ptrace(PTRACE_SETREGSET, tid_, NT_X86_XSTATE, &part) == 0;
}

bool TracedThread::ReadSignalMask(uint64_t& mask) const {
  return Ptrace(PTRACE_GETSIGMASK, tid_, sizeof(mask), &mask) == 0;
}

bool TracedThread::WriteSignalMask(uint64_t mask) const {
  return Ptrace(PTRACE_SETSIGMASK, tid_, sizeof(mask), &mask) == 0;
}

bool TracedThread::IsInRestartableSequence() const {
  __ptrace_rseq_configuration place{};
  if (Ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid_, sizeof(place), &place) <= 0) return false;
  if (place.rseq_abi_pointer == 0) return false;
  constexpr uint64_t kCriticalSectionAt = 8;  // struct rseq::rseq_cs
  uint64_t section = 0;
  return ProcessMemory(tid_).Read(place.rseq_abi_pointer + kCriticalSectionAt, &section,
                                  sizeof(section)) &&
         section != 0;
}

}  // namespace xpu
