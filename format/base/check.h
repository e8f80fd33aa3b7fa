// XPU_CHECK: for what cannot happen, in release builds too. Never for what a file, a process or
// the system can cause: those are Results.
#pragma once

#include <cstdio>
#include <cstdlib>

#define XPU_CHECK(condition)                                                               \
  do {                                                                                     \
    if (!(condition)) [[unlikely]] {                                                       \
      std::fprintf(stderr, "%s:%d: internal error: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
