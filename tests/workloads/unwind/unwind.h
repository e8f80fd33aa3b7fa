// What the programs share whose stacks are known: frames that stay frames, leaves that burn CPU,
// and the report of the paths to them.
//
// They are compiled without frame pointers. Functions on a path have C names, so that a symbol
// table alone names them, and barriers after their calls, so that none becomes a jump.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <unistd.h>

#if defined(__clang__)
#define XPU_NOT_COPIED __attribute__((noinline))
#else
#define XPU_NOT_COPIED __attribute__((noinline, noclone, noipa))
#endif
// __VA_ARGS__: the whole declaration.
#define XPU_FRAME extern "C" XPU_NOT_COPIED

// After a call, so that the call is not the last instruction of its function.
#define XPU_BARRIER() asm volatile("" ::: "memory")

// The frame pointer register holds something else here, as in any code that was not compiled to
// keep it: the compiler saves it and says so in the unwind tables.
#define XPU_SPOIL_FRAME_POINTER() asm volatile("movl $0x5150, %%ebp" ::: "rbp", "memory")

// A chain of dependent operations: the same cost on every pass. The loop has no calls.
#define XPU_BURN(iterations)                              \
  do {                                                    \
    uint64_t x = 0x9e3779b97f4a7c15;                      \
    for (uint64_t i = (iterations)*64 + 1; i != 0; --i) { \
      x ^= x << 13;                                       \
      x ^= x >> 7;                                        \
      asm volatile("" : "+r"(x));                         \
    }                                                     \
  } while (false)

// A function that does nothing but burn.
#define XPU_LEAF(name)                  \
  XPU_FRAME void name(uint64_t amount); \
  void name(uint64_t amount) { XPU_BURN(amount); }

namespace unwind {

inline uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The amount that burns `milliseconds` of CPU time. Where a hypervisor takes the processor away for
// a while, that counts as CPU time: the shortest of some measurements has the least of it.
inline uint64_t Amount(double milliseconds) {
  static const double per_ms = [] {
    constexpr uint64_t kAmount = 20'000;
    uint64_t shortest_ns = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
      const uint64_t begin = ClockNs(CLOCK_THREAD_CPUTIME_ID);
      XPU_BURN(kAmount);
      const uint64_t burnt_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin + 1;
      if (burnt_ns < shortest_ns) shortest_ns = burnt_ns;
    }
    return kAmount * 1e6 / static_cast<double>(shortest_ns);
  }();
  return static_cast<uint64_t>(milliseconds * per_ms);
}

// How long a leaf burns, the first argument of each program.
inline double Milliseconds(int argc, char** argv) {
  return argc > 1 ? std::strtod(argv[1], nullptr) : 100;
}

// One line of JSON per leaf: its path from the leaf outwards, in C names; [vdso], [plt] and
// [generated] stand for code without names. `end` says how far the stack must reach: "complete",
// "truncated" (by the limit of frames), or to the end of `path` for lack of a rule ("no_rule").
// A leaf "in:FILE" is all code of a library, whose stacks must only be such that their part in the
// program itself is the end of some path.
inline void Expect(const char* leaf, const char* path, const char* end = "complete") {
  std::printf("{\"pid\":%d,\"leaf\":\"%s\",\"path\":\"%s\",\"end\":\"%s\"}\n", getpid(), leaf, path,
              end);
}

}  // namespace unwind

// What is below main, and below a thread's function.
#define XPU_BELOW_MAIN ";main;__libc_start_call_main;__libc_start_main;_start"
#define XPU_BELOW_THREAD ";start_thread;clone3"
