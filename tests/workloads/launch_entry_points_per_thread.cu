// The doors of launch_doors.cu with the per-thread default stream. Compiled with
// CUDA_API_PER_THREAD_DEFAULT_STREAM (nvcc: --default-stream per-thread): the calls go to the
// functions whose names end in _ptsz.
#define XPU_DOOR(name) name##_per_thread
#include "launch_doors.h"

Doors PerThreadDoors() { return {kDoors, sizeof(kDoors) / sizeof(kDoors[0])}; }
