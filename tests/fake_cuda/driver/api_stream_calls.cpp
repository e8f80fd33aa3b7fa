// What is done to a stream and is neither launch, copy nor set. Compiled twice: default_stream.h.
#include <algorithm>
#include <array>

#include "calls.h"
#include "default_stream.h"
#include "graph.h"
#include "memory.h"

using namespace xpu::fake_cuda;

namespace {

struct GraphLaunchParams {
  CUgraphExec exec;
  CUstream stream;
};

void EmitSync(const DriverScope& scope, uint32_t type, CUstream stream, uint32_t event_id,
              uint64_t start_ns) {
  Activity sync{ActivityKind::kSync};
  sync.type = type;
  sync.context_id = ContextId(stream->context);
  sync.stream_id = stream->id;
  sync.event_id = event_id;
  sync.correlation_id = scope.correlation_id();
  sync.start_ns = start_ns;
  sync.end_ns = NowNs();
  Emit(sync);
}

}  // namespace

extern "C" {

CUresult cuStreamSynchronize(CUstream stream) {
  const std::array<const void*, 1> params{stream};  // as in cuStreamSynchronize_params
  DriverScope scope(XPU_PTSZ(126, 440, "cuStreamSynchronize"), params.data());
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  stream = Resolve(XPU_STREAM(stream));
  if (stream->capture != nullptr) return scope.Return(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const uint64_t start_ns = NowNs();
  WaitFor(stream);
  EmitSync(scope, kStreamSync, stream, UINT32_MAX, start_ns);
  return scope.Return(CheckContext());
}

CUresult cuStreamQuery(CUstream stream) {
  DriverScope scope(XPU_PTSZ(125, 439, "cuStreamQuery"));
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  stream = Resolve(XPU_STREAM(stream));
  const bool is_busy = NowNs() < TailOf(stream) || stream->host_calls.load() != 0;
  return scope.Return(is_busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

// Later work waits for the event; a stream that waits for an event of a capture joins it.
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int /*flags*/) {
  const std::array<const void*, 3> params{stream, event};  // as in cuStreamWaitEvent_params
  DriverScope scope(XPU_PTSZ(295, 436, "cuStreamWaitEvent"), params.data());
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  stream = Resolve(XPU_STREAM(stream));
  if (event->capture != nullptr) {
    JoinCapture(stream, event->capture, event->capture_tail);
    EmitSync(scope, kStreamWaitEvent, stream, event->id, NowNs());  // graph_paths has it too
    return scope.Return(CUDA_SUCCESS);
  }
  const uint64_t start_ns = NowNs();
  {
    const std::lock_guard lock(TheDevice().mutex);
    stream->tail_ns = std::max(stream->tail_ns, event->time_ns);
  }
  EmitSync(scope, kStreamWaitEvent, stream, event->id, start_ns);
  return scope.Return(CUDA_SUCCESS);
}

// The event happens when the work before it has ended, but not before the call.
CUresult cuEventRecord(CUevent event, CUstream stream) {
  DriverScope scope(XPU_PTSZ(119, 441, "cuEventRecord"));
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  stream = Resolve(XPU_STREAM(stream));
  event->capture = stream->capture;
  event->capture_tail = stream->capture_tail;
  if (stream->capture == nullptr) event->time_ns = std::max(NowNs(), TailOf(stream));
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode /*mode*/) {
  DriverScope scope(XPU_PTSZ(539, 540, "cuStreamBeginCapture_v2"));
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  if (XPU_STREAM(stream) == nullptr) return scope.Return(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  JoinCapture(Resolve(XPU_STREAM(stream)), NewGraph(), {});
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  DriverScope scope(XPU_PTSZ(497, 498, "cuStreamEndCapture"));
  stream = Resolve(XPU_STREAM(stream));
  if (stream->capture == nullptr) return scope.Return(CUDA_ERROR_INVALID_VALUE);
  *graph = LeaveCapture(stream);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  DriverScope scope(XPU_PTSZ(499, 500, "cuStreamIsCapturing"));
  const bool captures = Resolve(XPU_STREAM(stream))->capture != nullptr;
  *status = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return scope.Return(CheckContext());
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const GraphLaunchParams params{exec, stream};
  DriverScope scope(XPU_PTSZ(514, 515, "cuGraphLaunch"), &params);
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  Replay(exec, Resolve(XPU_STREAM(stream)), scope.correlation_id());
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream /*stream*/) {
  DriverScope scope(XPU_PTSZ(598, 599, "cuMemAllocAsync"));
  void* memory = nullptr;
  const CUresult result = Allocate(&TheDevice().device_memory, bytes, &memory);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<CUdeviceptr>(memory);
  return scope.Return(result);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream /*stream*/) {
  DriverScope scope(XPU_PTSZ(600, 601, "cuMemFreeAsync"));
  return scope.Return(Free({&TheDevice().device_memory}, reinterpret_cast<void*>(pointer)));
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t /*bytes*/, CUmemLocation /*location*/,
                            unsigned int /*flags*/, CUstream /*stream*/) {
  DriverScope scope(XPU_PTSZ(716, 717, "cuMemPrefetchAsync_v2"));
  const bool managed = DevicePlace(pointer).kind == kManaged;
  return scope.Return(managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

}  // extern "C"
