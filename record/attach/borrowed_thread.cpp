#include "record/attach/borrowed_thread.h"

#include <utility>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "record/base/clock.h"
#include "record/base/process_memory.h"

namespace xpu {
namespace {

constexpr uint64_t kCallNs = 5'000'000'000;  // mmap or pthread_create, on a machine with other work
constexpr uint64_t kFinishNs = 2'000'000'000;
constexpr uint64_t kAllSignals = UINT64_MAX;
// By it the C library changes the user in all threads (SIGSETXID), and waits for each. A thread
// that is created inherits the mask: it would keep that waiting while the library is loaded.
constexpr uint64_t kAllButSetUser = kAllSignals & ~(uint64_t{1} << (33 - 1));
constexpr uint64_t kRestorerCallAt = 9;  // the instruction after its syscall
constexpr uint64_t kMapAlignment = 4096;

}  // namespace

bool BorrowedThread::Prepare() {
  auto frame = MakeSignalFrame(before_, functions_.restorer);
  if (!frame) return false;
  frame_ = *std::move(frame);
  return ProcessMemory(thread_.tid())
      .Write(frame_.address, frame_.bytes.data(), frame_.bytes.size());
}

// The order matters: at each point the thread can go on alone. With the registers of the call it
// executes the call and returns through the frame, which has its signal mask too.
bool BorrowedThread::BeginCall(uint64_t function, const std::vector<uint64_t>& arguments,
                               uint64_t blocked_signals) {
  if (!thread_.WriteRegisters(RegistersForCall(before_, frame_, function, arguments))) return false;
  at_return_ = false;
  return thread_.WriteSignalMask(blocked_signals);
}

bool BorrowedThread::RunUntilReturn(long wanted_call, uint64_t* result) {
  const uint64_t deadline_ns = MonotonicNs() + kCallNs;
  bool in_wanted = false;
  while (true) {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns >= deadline_ns) return false;
    last_stop_ = thread_.RunToSystemCall(deadline_ns - now_ns);
    if (last_stop_ == TracedThread::Stop::kGroupStopped) continue;
    if (last_stop_ != TracedThread::Stop::kSystemCall) return false;
    user_regs_struct now;
    if (!thread_.ReadRegisters(now)) return false;
    // A signal handler returns the same way, but not from our frame.
    if (now.orig_rax == SYS_rt_sigreturn && now.rip == functions_.restorer + kRestorerCallAt &&
        now.rsp == frame_.return_slot + sizeof(uint64_t)) {
      at_return_ = true;
      return true;
    }
    if (in_wanted) {
      *result = now.rax;
      wanted_call = -1;
    }
    in_wanted = static_cast<long>(now.orig_rax) == wanted_call;
  }
}

uint64_t BorrowedThread::Map(uint64_t bytes) {
  uint64_t address = 0;
  const bool returned = BeginCall(functions_.mmap,
                                  {0, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
                                  kAllSignals) &&
                        (Observe(AttachStage::kInFirstCall), RunUntilReturn(SYS_mmap, &address));
  const bool is_error = static_cast<int64_t>(address) < 0 && static_cast<int64_t>(address) > -4096;
  return returned && !is_error && address % kMapAlignment == 0 ? address : 0;
}

bool BorrowedThread::CallAndRelease(uint64_t function, const std::vector<uint64_t>& arguments) {
  uint64_t unused = 0;
  if (!at_return_ || !BeginCall(function, arguments, kAllButSetUser)) return false;
  Observe(AttachStage::kInSecondCall);
  if (KeepsTime()) RunUntilReturn(-1, &unused);
  Release();
  return true;
}

// rt_sigreturn would end a call with a time limit, which the kernel otherwise continues: it is
// canceled, and the registers are put back in two steps. After the first one the thread can repeat
// the call from its beginning, if nobody does the second one.
void BorrowedThread::GoOnWithTimeLimit() {
  if (!thread_.WriteSignalMask(before_.signal_mask) || !thread_.WriteVectors(before_.vectors) ||
      !thread_.WriteRegisters(BeginAgain(before_.general))) {
    return;
  }
  if (thread_.FinishCanceledCall(kFinishNs) == TracedThread::Stop::kInterrupted) {
    thread_.WriteRegisters(before_.general);
  }
}

void BorrowedThread::Release() {
  if (at_return_) Observe(AttachStage::kCallReturns);
  if (at_return_ && KeepsTime()) GoOnWithTimeLimit();
  thread_.Detach();
}

}  // namespace xpu
