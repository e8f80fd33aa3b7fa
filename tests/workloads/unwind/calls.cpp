// Frames of every form that compilers make.
//   calls [MILLISECONDS]
#include <csetjmp>
#include <cstdarg>

#include <alloca.h>

#include "unwind.h"

XPU_LEAF(LeafPlain)
XPU_LEAF(LeafVariadic)
XPU_LEAF(LeafBig)
XPU_LEAF(LeafAlloca)
XPU_LEAF(LeafAligned)
XPU_LEAF(LeafAlignedAlloca)
XPU_LEAF(LeafDeep)
XPU_LEAF(LeafTooDeep)
XPU_LEAF(LeafPointer)

XPU_FRAME void RunPlain(uint64_t amount) {
  XPU_SPOIL_FRAME_POINTER();
  LeafPlain(amount);
  XPU_BARRIER();
}

XPU_FRAME void RunVariadic(uint64_t amount, ...) {
  va_list arguments;
  va_start(arguments, amount);
  const double factor = va_arg(arguments, double);
  va_end(arguments);
  LeafVariadic(static_cast<uint64_t>(static_cast<double>(amount) * factor));
  XPU_BARRIER();
}

// More than a page, and more than fits the offset of a short row.
XPU_FRAME void RunBig(uint64_t amount) {
  volatile char big[300'000];
  big[0] = 1;
  big[sizeof(big) - 1] = 1;
  XPU_SPOIL_FRAME_POINTER();
  LeafBig(amount + static_cast<uint64_t>(big[sizeof(big) - 1] - big[0]));
  XPU_BARRIER();
}

XPU_FRAME void RunAlloca(uint64_t amount) {
  auto* memory = static_cast<volatile char*>(alloca(amount % 1000 + 64));
  memory[0] = 1;
  LeafAlloca(amount);
  XPU_BARRIER();
}

XPU_FRAME void RunAligned(uint64_t amount) {
  alignas(64) volatile char memory[128];
  memory[0] = 1;
  asm volatile("" ::"r"(memory));
  LeafAligned(amount);
  XPU_BARRIER();
}

// g++ reaches the caller's frame through a pointer it saved: CFA = *(rbp - 8).
XPU_FRAME void RunAlignedAlloca(uint64_t amount) {
  alignas(64) volatile char memory[128];
  auto* more = static_cast<volatile char*>(alloca(amount % 1000 + 64));
  memory[0] = 1;
  more[0] = 1;
  asm volatile("" ::"r"(memory), "r"(more));
  LeafAlignedAlloca(amount);
  XPU_BARRIER();
}

XPU_FRAME void RunPointer(void (*leaf)(uint64_t), uint64_t amount) {
  XPU_SPOIL_FRAME_POINTER();
  leaf(amount);
  XPU_BARRIER();
}

XPU_FRAME void RunDeep(uint64_t amount, int depth) {
  XPU_SPOIL_FRAME_POINTER();
  if (depth > 1) {
    RunDeep(amount, depth - 1);
  } else {
    LeafDeep(amount);
  }
  XPU_BARRIER();
}

XPU_FRAME void RunTooDeep(uint64_t amount, int depth) {
  XPU_SPOIL_FRAME_POINTER();
  if (depth > 1) {
    RunTooDeep(amount, depth - 1);
  } else {
    LeafTooDeep(amount);
  }
  XPU_BARRIER();
}

// The call is the last instruction: its return address is after the function's end.
namespace {
jmp_buf way_out;
}  // namespace

extern "C" [[noreturn]] XPU_NOT_COPIED void LeafNoReturn(uint64_t amount) {
  XPU_BURN(amount);
  longjmp(way_out, 1);
}

extern "C" [[noreturn]] XPU_NOT_COPIED void RunNoReturn(uint64_t amount) {
  XPU_SPOIL_FRAME_POINTER();
  LeafNoReturn(amount);
}

XPU_FRAME void CatchNoReturn(uint64_t amount) {
  if (setjmp(way_out) == 0) RunNoReturn(amount);
  XPU_BARRIER();
}

XPU_FRAME void RunClock(double milliseconds) {
  const uint64_t end =
      unwind::ClockNs(CLOCK_THREAD_CPUTIME_ID) + static_cast<uint64_t>(milliseconds * 1e6);
  while (unwind::ClockNs(CLOCK_THREAD_CPUTIME_ID) < end) {
    timespec now;
    for (int i = 0; i < 10'000; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
  }
  XPU_BARRIER();
}

namespace {

// The most frames of a user stack (XPU_MAX_USER_FRAMES in bpf/events.h).
constexpr int kLimit = 512;
// RunDeep so often: with its leaf and the four below it exactly the limit.
constexpr int kDeep = kLimit - 5;

void PrintPaths() {
  using unwind::Expect;
  Expect("LeafPlain", "LeafPlain;RunPlain" XPU_BELOW_MAIN);
  Expect("LeafVariadic", "LeafVariadic;RunVariadic" XPU_BELOW_MAIN);
  Expect("LeafBig", "LeafBig;RunBig" XPU_BELOW_MAIN);
  Expect("LeafAlloca", "LeafAlloca;RunAlloca" XPU_BELOW_MAIN);
  Expect("LeafAligned", "LeafAligned;RunAligned" XPU_BELOW_MAIN);
  Expect("LeafAlignedAlloca", "LeafAlignedAlloca;RunAlignedAlloca" XPU_BELOW_MAIN);
  Expect("LeafPointer", "LeafPointer;RunPointer" XPU_BELOW_MAIN);
  Expect("LeafNoReturn", "LeafNoReturn;RunNoReturn;CatchNoReturn" XPU_BELOW_MAIN);
  Expect("[vdso]", "[vdso];clock_gettime;RunClock" XPU_BELOW_MAIN);
  Expect("also", "clock_gettime" XPU_BELOW_MAIN);  // in unwind::Amount
  char path[16384] = "LeafDeep";
  for (int i = 0; i < kDeep; ++i) std::strcat(path, ";RunDeep");
  Expect("LeafDeep", std::strcat(path, XPU_BELOW_MAIN));
  std::strcpy(path, "LeafTooDeep");
  for (int i = 1; i < kLimit; ++i) std::strcat(path, ";RunTooDeep");
  Expect("LeafTooDeep", path, "truncated");
}

}  // namespace

int main(int argc, char** argv) {
  const double milliseconds = unwind::Milliseconds(argc, argv);
  const uint64_t amount = unwind::Amount(milliseconds);
  RunPlain(amount);
  RunVariadic(amount, 1.0);
  RunBig(amount);
  RunAlloca(amount);
  RunAligned(amount);
  RunAlignedAlloca(amount);
  RunPointer(LeafPointer, amount);
  CatchNoReturn(amount);
  RunClock(milliseconds);
  RunDeep(amount, kDeep);
  RunTooDeep(amount, 2 * kLimit);
  PrintPaths();
  return 0;
}
