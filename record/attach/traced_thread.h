// One thread of another process, held still by ptrace for a moment. All calls must come from the
// thread that seized it: that is the kernel's rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

#include "format/base/result.h"

namespace xpu {

class TracedThread {
 public:
  enum class Stop {
    kInterrupted,   // by Interrupt
    kSystemCall,    // at the entry or the exit of a system call, after RunToSystemCall
    kGroupStopped,  // the whole process is stopped, by SIGSTOP or from a terminal
    kFault,  // it is about to receive a signal that cannot be blocked: it did something wrong
    kGone,   // it has ended
    kTimedOut,
  };

  // kPermission: it may not be traced, or another tracer has it.
  static Result<TracedThread> Seize(pid_t tid);
  TracedThread(TracedThread&& other) noexcept : tid_(other.tid_) { other.tid_ = 0; }
  TracedThread& operator=(TracedThread&&) = delete;
  // Lets it go on.
  ~TracedThread() { Detach(); }

  pid_t tid() const { return tid_; }

  // Stops it wherever it is. Signals that arrive first are delivered to it.
  Stop Interrupt(uint64_t timeout_ns);
  // After a stop: lets it run to the next entry or exit of a system call. Signals that can be
  // blocked must be, by WriteSignalMask.
  Stop RunToSystemCall(uint64_t timeout_ns);
  // After a stop at a system call's entry that was canceled: stops it again before it executes any
  // instruction of the program.
  Stop FinishCanceledCall(uint64_t timeout_ns);
  // Lets it go on, from whatever stop it is in. Nothing happens if it is gone.
  void Detach();

  // All false if it is gone, or is not a 64-bit thread.
  bool ReadRegisters(user_regs_struct& registers) const;
  bool WriteRegisters(const user_regs_struct& registers) const;
  // The XSAVE area, in the kernel's standard format.
  bool ReadVectors(std::vector<std::byte>& area) const;
  bool WriteVectors(const std::vector<std::byte>& area) const;
  bool ReadSignalMask(uint64_t& mask) const;
  bool WriteSignalMask(uint64_t mask) const;
  // Whether it is in a restartable sequence (rseq(2)); false where the kernel cannot tell.
  bool IsInRestartableSequence() const;

 private:
  explicit TracedThread(pid_t tid) : tid_(tid) {}
  Stop Wait(uint64_t timeout_ns, bool wants_system_call);

  pid_t tid_;
};

}  // namespace xpu
