// What all workloads share: call sites that stay real frames, options, clocks.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

// Tests compare stacks frame by frame, so a function that should be a frame must be one: not
// inlined, not cloned (`name.constprop.0`), not folded with a twin. Tail calls, which would take
// the caller off the stack, are switched off for all workloads with -fno-optimize-sibling-calls,
// because no attribute does it.
#if defined(__GNUC__) && !defined(__clang__)
#define XPU_FRAME __attribute__((noinline, noclone, noipa))
#else
#define XPU_FRAME __attribute__((noinline))
#endif

namespace workload {

inline uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t ThreadId() { return static_cast<uint64_t>(syscall(SYS_gettid)); }

// `--name=value` or `--name value`; nullptr when absent.
inline const char* Option(int argc, char** argv, const char* name) {
  const size_t length = std::strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], name, length) != 0) continue;
    if (argv[i][length] == '=') return argv[i] + length + 1;
    if (argv[i][length] == '\0' && i + 1 < argc) return argv[i + 1];
  }
  return nullptr;
}

inline uint64_t OptionNumber(int argc, char** argv, const char* name, uint64_t otherwise) {
  const char* value = Option(argc, argv, name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

inline std::string OptionString(int argc, char** argv, const char* name, const char* otherwise) {
  const char* value = Option(argc, argv, name);
  return value == nullptr ? otherwise : value;
}

inline bool Flag(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return true;
  }
  return false;
}

}  // namespace workload
