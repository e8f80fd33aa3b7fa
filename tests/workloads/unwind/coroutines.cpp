// Stacks that a program makes and enters itself, by ucontext and by a switch written by hand. At
// their bottom lies an address that no call returns to.
//   coroutines [MILLISECONDS]
#include <ucontext.h>

#include "unwind.h"

XPU_LEAF(LeafContext)
XPU_LEAF(LeafSwitched)

// Saves the registers that calls keep, takes the other stack, goes on where that one was left.
extern "C" void SwitchStack(void** from, void* to);
// Where a coroutine would return to, marked as outermost; the address that it is given is after the
// nop.
extern "C" void CoroutineEnd();
asm(R"(
  .text
  .globl SwitchStack
  .type SwitchStack, @function
SwitchStack:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  pushq %r12
  .cfi_adjust_cfa_offset 8
  pushq %r13
  .cfi_adjust_cfa_offset 8
  pushq %r14
  .cfi_adjust_cfa_offset 8
  pushq %r15
  .cfi_adjust_cfa_offset 8
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  .cfi_adjust_cfa_offset -8
  popq %r14
  .cfi_adjust_cfa_offset -8
  popq %r13
  .cfi_adjust_cfa_offset -8
  popq %r12
  .cfi_adjust_cfa_offset -8
  popq %rbx
  .cfi_adjust_cfa_offset -8
  popq %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  ret
  .cfi_endproc
  .size SwitchStack, . - SwitchStack
  .globl CoroutineEnd
  .type CoroutineEnd, @function
CoroutineEnd:
  .cfi_startproc
  .cfi_undefined %rip
  nop
  ud2
  .cfi_endproc
  .size CoroutineEnd, . - CoroutineEnd
)");

namespace {
constexpr size_t kStackBytes = 1 << 18;
alignas(64) char context_stack[kStackBytes];
alignas(64) char switched_stack[kStackBytes];
ucontext_t main_context;
ucontext_t own_context;
void* main_stack = nullptr;
void* own_stack = nullptr;
uint64_t amount = 0;
}  // namespace

XPU_FRAME void RunContext() {
  XPU_SPOIL_FRAME_POINTER();
  LeafContext(amount);
  XPU_BARRIER();
}

XPU_FRAME void EnterContext() {
  getcontext(&own_context);
  own_context.uc_stack.ss_sp = context_stack;
  own_context.uc_stack.ss_size = kStackBytes;
  own_context.uc_link = &main_context;
  makecontext(&own_context, RunContext, 0);
  swapcontext(&main_context, &own_context);
  XPU_BARRIER();
}

XPU_FRAME void RunSwitched() {
  XPU_SPOIL_FRAME_POINTER();
  LeafSwitched(amount);
  SwitchStack(&own_stack, main_stack);
}

XPU_FRAME void EnterSwitched() {
  constexpr size_t kSavedRegisters = 6;
  auto* top = reinterpret_cast<uint64_t*>(switched_stack + kStackBytes) - 2;
  top[0] = reinterpret_cast<uint64_t>(CoroutineEnd) + 1;
  top[1] = 0;
  top[-1] = reinterpret_cast<uint64_t>(RunSwitched);
  for (size_t i = 0; i < kSavedRegisters; ++i) top[-2 - static_cast<int>(i)] = 0;
  SwitchStack(&main_stack, top - 1 - kSavedRegisters);
  XPU_BARRIER();
}

int main(int argc, char** argv) {
  amount = unwind::Amount(unwind::Milliseconds(argc, argv));
  EnterContext();
  EnterSwitched();
  using unwind::Expect;
  Expect("LeafContext", "LeafContext;RunContext;__start_context");
  Expect("LeafSwitched", "LeafSwitched;RunSwitched;CoroutineEnd");
  return 0;
}
