// Streams, events and waiting.
#include "calls.h"

using namespace xpu::fake_cuda;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  DriverScope scope(124, "cuStreamCreate");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  Device& device = TheDevice();
  auto* made = new CUstream_st;
  made->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  {
    const std::lock_guard lock(device.mutex);
    made->id = device.next_stream_id++;
    device.streams.insert(made);
  }
  *stream = made;
  Activity record{ActivityKind::kStream};
  record.context_id = 1;
  record.stream_id = made->id;
  record.type = made->blocking ? 1 : 2;
  record.correlation_id = scope.correlation_id();
  Emit(record);
  Announce({.callback_id = 3, .context = &device.context, .stream = made});  // STREAM_CREATED
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream stream) {
  DriverScope scope(326, "cuStreamDestroy_v2");
  Device& device = TheDevice();
  {
    const std::lock_guard lock(device.mutex);
    if (!device.streams.contains(stream)) return scope.Return(CUDA_ERROR_INVALID_HANDLE);
  }
  Announce({.callback_id = 4, .context = &device.context, .stream = stream});  // DESTROY_STARTING
  {
    const std::lock_guard lock(device.mutex);
    device.streams.erase(stream);
  }
  delete stream;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream) {
  DriverScope scope(126, "cuStreamSynchronize");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  if (Resolve(stream)->capture != nullptr) {
    return scope.Return(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  Activity sync{ActivityKind::kSync};
  sync.type = kStreamSync;
  sync.context_id = 1;
  sync.stream_id = Resolve(stream)->id;
  sync.correlation_id = scope.correlation_id();
  sync.start_ns = NowNs();
  SleepUntil(TailOf(stream));
  sync.end_ns = NowNs();
  Emit(sync);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuEventCreate(CUevent* event, unsigned int /*flags*/) {
  DriverScope scope(118, "cuEventCreate");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  *event = new CUevent_st;
  return scope.Return(CUDA_SUCCESS);
}

// The event happens when the work before it has ended, but not before the call.
CUresult cuEventRecord(CUevent event, CUstream stream) {
  DriverScope scope(119, "cuEventRecord");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  event->time_ns = std::max(NowNs(), TailOf(stream));
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuEventSynchronize(CUevent event) {
  DriverScope scope(121, "cuEventSynchronize");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  SleepUntil(event->time_ns);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  DriverScope scope(780, "cuEventElapsedTime_v2");
  if (start->time_ns == 0 || end->time_ns == 0) return scope.Return(CUDA_ERROR_INVALID_HANDLE);
  if (NowNs() < std::max(start->time_ns, end->time_ns)) return scope.Return(CUDA_ERROR_NOT_READY);
  const auto ns = static_cast<int64_t>(end->time_ns - start->time_ns);
  *milliseconds = static_cast<float>(static_cast<double>(ns) / 1e6);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event) {
  DriverScope scope(325, "cuEventDestroy_v2");
  delete event;
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
