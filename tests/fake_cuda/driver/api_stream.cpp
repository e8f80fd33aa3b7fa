// Streams and events as objects; what is done to a stream is in api_stream_calls.cpp.
#include <algorithm>
#include <array>
#include <utility>

#include <unistd.h>

#include "calls.h"

using namespace xpu::fake_cuda;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  DriverScope scope(124, "cuStreamCreate");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  Device& device = TheDevice();
  const CUcontext context = CurrentContext();
  auto* made = new CUstream_st;
  made->context = context;
  made->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  {
    const std::lock_guard lock(device.mutex);
    made->id = device.next_stream_id++;
    context->streams.insert(made);
  }
  *stream = made;
  Activity record{ActivityKind::kStream};
  record.context_id = ContextId(context);
  record.stream_id = made->id;
  record.type = made->blocking ? 1 : 2;
  record.correlation_id = scope.correlation_id();
  Emit(record);
  Announce({.callback_id = 3, .context = context, .stream = made});  // STREAM_CREATED
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  DriverScope scope(483, "cuStreamGetCtx");
  *context = Resolve(stream)->context;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream stream) {
  DriverScope scope(326, "cuStreamDestroy_v2");
  Device& device = TheDevice();
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(device.mutex);
    for (CUctx_st& one : device.contexts) {
      if (one.streams.contains(stream)) context = &one;
    }
  }
  if (context == nullptr) return scope.Return(CUDA_ERROR_INVALID_HANDLE);
  Announce({.callback_id = 4, .context = context, .stream = stream});  // DESTROY_STARTING
  while (stream->host_calls.load() != 0) usleep(20);
  {
    const std::lock_guard lock(device.mutex);
    context->streams.erase(stream);
  }
  delete stream;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuEventCreate(CUevent* event, unsigned int /*flags*/) {
  DriverScope scope(118, "cuEventCreate");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  *event = new CUevent_st;
  const std::lock_guard lock(TheDevice().mutex);
  (*event)->id = TheDevice().next_event_id++;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuEventSynchronize(CUevent event) {
  const std::array<const void*, 1> params{event};  // as in cuEventSynchronize_params
  DriverScope scope(121, "cuEventSynchronize", params.data());
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  Activity sync{ActivityKind::kSync};
  sync.type = kEventSync;
  sync.context_id = ContextId(CurrentContext());
  sync.stream_id = UINT32_MAX;
  sync.event_id = event->id;
  sync.correlation_id = scope.correlation_id();
  sync.start_ns = NowNs();
  WaitUntil(*CurrentContext(), event->time_ns);
  sync.end_ns = NowNs();
  Emit(sync);
  return scope.Return(CheckContext());
}

CUresult cuEventQuery(CUevent event) {
  DriverScope scope(120, "cuEventQuery");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  return scope.Return(NowNs() < event->time_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  DriverScope scope(541, "cuThreadExchangeStreamCaptureMode");
  thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, mode_of_thread);
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
