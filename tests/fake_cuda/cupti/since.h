// Functions that came with some version: dlsym does not find them in an older one.
#pragma once

#include "settings.h"

// After the definition of `implementation`, in an extern "C" block.
#define XPU_SINCE(cuda_version, function, implementation)                    \
  decltype(&implementation) ResolveFake_##function() {                       \
    return TheSettings().cuda >= (cuda_version) ? &implementation : nullptr; \
  }                                                                          \
  decltype(implementation) function __attribute__((ifunc("ResolveFake_" #function)));
