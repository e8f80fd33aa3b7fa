// What record_probed_code_test.py records: calls of functions of which each begins with another
// kind of instruction, for the kernel does what a probe replaces in one of four ways.
//   FUNCTION MILLISECONDS [signals]   of its own CPU time; with a signal each millisecond, whose
//   handler computes
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include <signal.h>
#include <sys/time.h>

// It does a push itself; runs a change of rsp elsewhere, from a copy; skips a nop; may replace a
// long one by a call. NOLINTNEXTLINE(hicpp-no-assembler)
asm(R"(
  .text
  .globl Pushes, Subtracts, Nothing, LongNothing, Keeps
  .type Pushes, @function
  .type Subtracts, @function
  .type Nothing, @function
  .type LongNothing, @function
  .type Keeps, @function
Pushes:
  .cfi_startproc
  push %rbp
  .cfi_adjust_cfa_offset 8
  pop %rbp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size Pushes, .-Pushes
Subtracts:
  .cfi_startproc
  sub $24, %rsp
  .cfi_adjust_cfa_offset 24
  add $24, %rsp
  .cfi_adjust_cfa_offset -24
  ret
  .cfi_endproc
  .size Subtracts, .-Subtracts
Nothing:
  .cfi_startproc
  nop
  ret
  .cfi_endproc
  .size Nothing, .-Nothing
LongNothing:
  .cfi_startproc
  .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
  ret
  .cfi_endproc
  .size LongNothing, .-LongNothing
Keeps:
  .cfi_startproc
  push %rbx
  .cfi_adjust_cfa_offset 8
  nop
  pop %rbx
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size Keeps, .-Keeps
)");

extern "C" {
void Pushes();
void Subtracts();
void Nothing();
void LongNothing();
void Keeps();  // at +1 what it pushed is still in its register

// Zeros follow the return address: a walk that took them for one would end there, as complete.
__attribute__((noinline, noclone, noipa)) void Caller(void (*function)()) {
  volatile long zeros[8] = {};
  function();
  zeros[0] = zeros[7];
}

__attribute__((noinline, noclone, noipa)) void Handler(int /*signal*/) {
  for (int i = 0; i < 50'000; ++i) asm volatile("");
}
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (argc > 3) {
    signal(SIGALRM, Handler);
    const itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  struct Choice {
    const char* name;
    void (*function)();
  };
  for (const Choice& choice :
       {Choice{"Pushes", Pushes}, Choice{"Subtracts", Subtracts}, Choice{"Nothing", Nothing},
        Choice{"LongNothing", LongNothing}, Choice{"Keeps", Keeps}}) {
    if (std::strcmp(choice.name, argv[1]) != 0) continue;
    std::puts("calling");
    std::fflush(stdout);
    while (std::clock() < std::atol(argv[2]) * (CLOCKS_PER_SEC / 1000)) {
      for (int i = 0; i < 100; ++i) Caller(choice.function);
    }
    return 0;
  }
  std::fprintf(stderr, "no function of that name\n");
  return 2;
}
