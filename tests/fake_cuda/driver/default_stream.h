// For files that are compiled twice: once for the functions as they are, once with
// CUDA_API_PER_THREAD_DEFAULT_STREAM for their twins. cuda_names.h gives those their names; this
// gives their callback ids and the stream that nullptr means.
#pragma once

#include <cuda.h>

// The first two arguments of a DriverScope or RuntimeScope.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define XPU_PTSZ(id, per_thread_id, name) per_thread_id, name "_ptsz"
#define XPU_PTDS(id, per_thread_id, name) per_thread_id, name "_ptds"
#define XPU_DEFAULT_STREAM CU_STREAM_PER_THREAD
#else
#define XPU_PTSZ(id, per_thread_id, name) id, name
#define XPU_PTDS(id, per_thread_id, name) id, name
#define XPU_DEFAULT_STREAM CUstream(nullptr)
#endif
#define XPU_STREAM(stream) ((stream) == nullptr ? XPU_DEFAULT_STREAM : (stream))
