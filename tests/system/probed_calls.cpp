// What record_probed_code_test.py records: calls of functions of which each begins with another
// kind of instruction, for the kernel does what a probe replaces in one of four ways.
//   FUNCTION MILLISECONDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

// It does a push itself; runs a change of rsp elsewhere, from a copy; skips a nop; may put a call
// in the place of a long one. NOLINTNEXTLINE(hicpp-no-assembler)
asm(R"(
  .text
  .globl Pushes, Subtracts, Nothing, LongNothing
  .type Pushes, @function
  .type Subtracts, @function
  .type Nothing, @function
  .type LongNothing, @function
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
)");

extern "C" {
void Pushes();
void Subtracts();
void Nothing();
void LongNothing();

// Zeros lie behind the return address: a walk that took them for one would end there, as complete.
__attribute__((noinline, noclone, noipa)) void Caller(void (*function)()) {
  volatile long zeros[8] = {};
  function();
  zeros[0] = zeros[7];
}
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  struct Choice {
    const char* name;
    void (*function)();
  };
  for (const Choice& choice : {Choice{"Pushes", Pushes}, Choice{"Subtracts", Subtracts},
                               Choice{"Nothing", Nothing}, Choice{"LongNothing", LongNothing}}) {
    if (std::strcmp(choice.name, argv[1]) != 0) continue;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(argv[2]));
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 100; ++i) Caller(choice.function);
    }
    return 0;
  }
  std::fprintf(stderr, "no function of that name\n");
  return 2;
}
