// The way back of a borrowed thread: a signal frame, as the kernel itself puts one on a thread's
// stack before it calls a signal handler.
//
// Whatever is called on the thread returns into libc's __restore_rt, and rt_sigreturn(2) restores
// every register, the vector registers and the signal mask from the frame. So the thread finds back
// by itself, also when xpu-record is killed at any moment. Rejected: restoring the registers by
// ptrace alone, which leaves the thread in the middle of our call when the tracer dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/user.h>

namespace xpu {

// What a thread had when it was stopped.
struct ThreadRegisters {
  user_regs_struct general{};
  std::vector<std::byte> vectors;  // as PTRACE_GETREGSET has them
  uint64_t signal_mask = 0;
};

struct SignalFrame {
  uint64_t address = 0;  // of `bytes`, below the red zone of the thread's stack
  std::vector<std::byte> bytes;
  uint64_t return_slot = 0;  // where a function that is called finds its return address
};

// System calls that a stop has interrupted, as the registers show it.
enum class InterruptedCall {
  kNone,        // it was not in one, or the call has its result
  kBeginAgain,  // the kernel repeats it with the same arguments
  kGoOn,        // the kernel continues it with the time that is left (restart_syscall)
};
InterruptedCall InterruptedCallOf(const user_regs_struct& registers);

// So that the thread executes the system call that it has returned from once more.
void RepeatCall(user_regs_struct& registers);

// The registers with which the thread executes the interrupted call again from its beginning.
user_regs_struct BeginAgain(user_regs_struct registers);

// `restorer`: the address of "mov $15, %rax; syscall" in the process. nullopt: the vector registers
// have a form that is not known.
std::optional<SignalFrame> MakeSignalFrame(const ThreadRegisters& thread, uint64_t restorer);

// Registers for a call of `function` whose return goes through the frame.
user_regs_struct RegistersForCall(const ThreadRegisters& thread, const SignalFrame& frame,
                                  uint64_t function, const std::vector<uint64_t>& arguments);

}  // namespace xpu
