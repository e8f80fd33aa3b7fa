// Handlers that burn CPU, on the stack that they interrupt and on one of their own.
//   signals [MILLISECONDS]
#include <csignal>

#include <sys/mman.h>
#include <sys/time.h>

#include "unwind.h"

XPU_LEAF(LeafHandler)
XPU_LEAF(LeafAlternate)

namespace {
// Handlers act only while the interrupted loop runs, not at the edges of the calls around it.
volatile sig_atomic_t in_loop = 0;
volatile sig_atomic_t handlers_left = 0;
uint64_t amount_of_handler = 0;
}  // namespace

XPU_FRAME void OnAlarm(int) {
  if (!in_loop || handlers_left == 0) return;
  handlers_left = handlers_left - 1;
  LeafHandler(amount_of_handler);
  XPU_BARRIER();
}

XPU_FRAME void OnAlternate(int) {
  if (!in_loop || handlers_left == 0) return;
  handlers_left = handlers_left - 1;
  LeafAlternate(amount_of_handler);
  XPU_BARRIER();
}

XPU_FRAME void LoopInterrupted() {
  in_loop = 1;
  while (handlers_left != 0) XPU_BURN(100);
  in_loop = 0;
}

XPU_FRAME void RunInterrupted(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGALRM, &action, nullptr);
  handlers_left = 10;
  itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  LoopInterrupted();
  every = {};
  setitimer(ITIMER_REAL, &every, nullptr);
}

int main(int argc, char** argv) {
  amount_of_handler = unwind::Amount(unwind::Milliseconds(argc, argv) / 10);
  RunInterrupted(OnAlarm, SA_RESTART);
  constexpr size_t kStackBytes = 1 << 18;
  stack_t stack = {};
  stack.ss_sp =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
  RunInterrupted(OnAlternate, SA_ONSTACK);
  using unwind::Expect;
  Expect("LeafHandler",
         "LeafHandler;OnAlarm;__restore_rt;LoopInterrupted;RunInterrupted" XPU_BELOW_MAIN);
  Expect("LeafAlternate",
         "LeafAlternate;OnAlternate;__restore_rt;LoopInterrupted;RunInterrupted" XPU_BELOW_MAIN);
  return 0;
}
