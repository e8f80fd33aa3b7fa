// Which thread of a process may be borrowed for a call of pthread_create, and when.
//
// The call takes locks of the C library. A thread that holds one of them would wait for itself, so
// its whole stack has to be known and to be free of code that may hold one. Locks of the driver or
// of the program do not matter: nothing of theirs is called on a borrowed thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "record/attach/signal_frame.h"
#include "record/attach/target_code.h"
#include "record/attach/traced_thread.h"

namespace xpu {

// How little a stop and a call on it would disturb the thread, the best first.
enum class Disturbance : uint8_t {
  kNone,       // it waits in a system call that the kernel repeats with the same arguments
  kTimeLimit,  // it waits, with a time limit that goes on
  kRunning,    // it loses its time on the CPU
  // A child of its own may end: the kernel then reports that although the program ignores it, by a
  // signal to a traced thread that interrupts others of the process (EINTR from epoll_wait).
  kHasChild,
  kEndsEarly,  // it waits in a call that a stop ends with EINTR, which is then repeated
  kExcluded,   // it must not be stopped, or does not stop
};

struct ThreadToBorrow {
  pid_t tid = 0;
  Disturbance disturbance = Disturbance::kExcluded;
};

// What /proc/PID/task/TID/syscall says: "running", or the number of a system call, its arguments,
// the stack pointer and the instruction pointer.
Disturbance DisturbanceOf(std::string_view syscall_text);

// Whether the thread has started a process that has not been waited for.
bool HasChild(pid_t pid, pid_t tid);

// The threads of a process but ours, the best first.
std::vector<ThreadToBorrow> ThreadsToTry(pid_t pid);

// A system call of the thread that the stop has ended with EINTR, although no signal came, is made
// again when the thread goes on.
void RepeatEndedCall(const TracedThread& thread, ThreadRegisters& registers);

// Why a stopped thread cannot be borrowed now.
struct Unsuitable {
  const char* why = nullptr;  // nullptr: it can
  bool needs_tables = false;  // the code in its stack has to be read first
};
Unsuitable WhyUnsuitable(const TracedThread& thread, const ThreadRegisters& registers,
                         TargetCode& code);

}  // namespace xpu
