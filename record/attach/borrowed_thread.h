// A thread that stands still, and the calls that are made on it.
#pragma once

#include <cstdint>
#include <vector>

#include "record/attach/attach_stage.h"
#include "record/attach/signal_frame.h"
#include "record/attach/target_code.h"
#include "record/attach/traced_thread.h"

namespace xpu {

// The calls on a borrowed thread. Whenever this object is not alive any more, the thread goes on
// with what it did before.
class BorrowedThread {
 public:
  BorrowedThread(TracedThread& thread, const ThreadRegisters& before,
                 const TargetFunctions& functions, const AttachObserver& observe)
      : thread_(thread), before_(before), functions_(functions), observe_(observe) {}

  // Puts the way back onto its stack.
  bool Prepare();
  // mmap of that many bytes, readable, writable and executable. 0: it failed.
  uint64_t Map(uint64_t bytes);
  // After Map: calls a function; what it returns is lost. The thread makes the call and finds back
  // alone, without a stop for each system call in it, unless it has to be put back into a wait with
  // a time limit. False: the call could not be begun.
  bool CallAndRelease(uint64_t function, const std::vector<uint64_t>& arguments);
  // Lets it go on without another call.
  void Release();
  // Why the last call did not come back.
  TracedThread::Stop last_stop() const { return last_stop_; }

 private:
  bool BeginCall(uint64_t function, const std::vector<uint64_t>& arguments,
                 uint64_t blocked_signals);
  // Until it is about to return; `result`: of the first system call with that number.
  bool RunUntilReturn(long wanted_call, uint64_t* result);
  bool KeepsTime() const { return InterruptedCallOf(before_.general) == InterruptedCall::kGoOn; }
  void GoOnWithTimeLimit();
  void Observe(AttachStage stage) const {
    if (observe_) observe_(stage);
  }

  TracedThread& thread_;
  const ThreadRegisters& before_;
  const TargetFunctions& functions_;
  const AttachObserver& observe_;
  SignalFrame frame_;
  bool at_return_ = false;  // at the entry of rt_sigreturn
  TracedThread::Stop last_stop_ = TracedThread::Stop::kInterrupted;
};

}  // namespace xpu
