// The calls of copies.cu as a program makes them that was compiled for the per-thread default
// stream: see launch_entry_points_per_thread.cu.
#define XPU_COPY(name) name##_per_thread
#include "copies.h"

CopyCalls PerThreadCopyCalls() { return {kCopyCalls, sizeof(kCopyCalls) / sizeof(kCopyCalls[0])}; }
