// The entry_points of launch_entry_points.cu with the per-thread default stream. Compiled with
// CUDA_API_PER_THREAD_DEFAULT_STREAM (nvcc: --default-stream per-thread): the calls go to the
// functions whose names end in _ptsz.
#define XPU_ENTRY_POINT(name) name##_per_thread
#include "launch_entry_points.h"

EntryPoints PerThreadEntryPoints() {
  return {kEntryPoints, sizeof(kEntryPoints) / sizeof(kEntryPoints[0])};
}
