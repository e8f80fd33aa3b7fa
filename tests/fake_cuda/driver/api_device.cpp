// Initialization, device and context.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <unistd.h>

#include "../settings.h"
#include "calls.h"

using namespace xpu::fake_cuda;

namespace {

thread_local std::vector<CUcontext> t_pushed_over;

void EmitOverhead(uint32_t type, uint64_t start_ns) {
  Activity overhead{ActivityKind::kOverhead};
  overhead.type = type;
  overhead.start_ns = start_ns;
  overhead.end_ns = NowNs();
  overhead.correlation_id = TheDriver().current_correlation_id();
  Emit(overhead);
}

void EmitStream(CUcontext context, uint32_t id, uint32_t flag, int32_t priority) {
  Activity stream{ActivityKind::kStream};
  stream.context_id = ContextId(context);
  stream.stream_id = id;
  stream.type = flag;
  stream.priority = priority;
  stream.correlation_id = TheDriver().current_correlation_id();
  Emit(stream);
}

// Those of the first context are 6 to 12, as every capture shows; no capture shows a second one.
uint32_t FirstOwnStream(CUcontext context) {
  constexpr uint32_t kOwnStreams = 7;
  if (context->ordinal == 0) return 6;
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  const uint32_t first = device.next_stream_id;
  device.next_stream_id += kOwnStreams;
  context->null_stream.id = first + 1;
  return first;
}

bool Exists(CUdevice device) {
  return device >= 0 && static_cast<size_t>(device) < TheDevice().contexts.size();
}

// The records of a new context, in the order of every capture (transformer_shared, records 2 to
// 15): its seven own streams (7 is the null stream), overheads, the context, overheads.
void EmitContext(CUcontext owner, uint64_t start_ns) {
  constexpr uint32_t kDefault = 1;
  constexpr uint32_t kNonBlocking = 2;
  constexpr uint32_t kNull = 3;
  const uint32_t first = FirstOwnStream(owner);
  EmitStream(owner, first, kDefault, 0);
  EmitStream(owner, first + 1, kNull, 0);
  for (uint32_t id = first + 2; id <= first + 5; ++id) EmitStream(owner, id, kNonBlocking, 0);
  EmitStream(owner, first + 6, kDefault, -5);
  EmitOverhead(kOverheadInstrumentation, start_ns);
  EmitOverhead(kOverheadInstrumentation, start_ns);
  EmitOverhead(kOverheadResource, start_ns);
  Activity context{ActivityKind::kContext};
  context.device_id = owner->ordinal;
  context.context_id = ContextId(owner);
  Emit(context);
  for (int i = 0; i < 3; ++i) EmitOverhead(kOverheadResource, start_ns);
}

CUresult Synchronize(CUcontext context, uint32_t correlation_id) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  Activity sync{ActivityKind::kSync};
  sync.type = kContextSync;
  sync.context_id = ContextId(context);
  sync.stream_id = UINT32_MAX;  // CUPTI_SYNCHRONIZATION_INVALID_VALUE
  sync.correlation_id = correlation_id;
  sync.start_ns = NowNs();
  WaitForAll(context);
  sync.end_ns = NowNs();
  Emit(sync);
  return FaultOf(*context);
}

void DestroyContext(CUcontext context, uint64_t start_ns) {
  WaitForAll(context);
  EmitOverhead(kOverheadResource, start_ns);  // driver_api, records 78 and 79
  EmitOverhead(kOverheadFlush, start_ns);
  Announce({.callback_id = 2, .context = context});  // CONTEXT_DESTROY_STARTING
  context->created = false;
}

void FreeMemoryOf(uint32_t ordinal) {
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  std::erase_if(device.device_memory, [&](const auto& entry) {
    if (entry.second.device != ordinal) return false;
    std::free(reinterpret_cast<void*>(entry.first));
    return true;
  });
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  // No callback shows the first call: the subscriber comes to life inside it.
  if (InitializeOnce()) return CUDA_SUCCESS;
  DriverScope scope(1, "cuInit");
  return scope.Return(CheckInitialized());
}

CUresult cuDriverGetVersion(int* version) {
  DriverScope scope(2, "cuDriverGetVersion");
  *version = static_cast<int>(EnvCudaVersion("XPU_FAKE_DRIVER_VERSION", CUDA_VERSION));
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_SUCCESS:
      *name = "CUDA_SUCCESS";
      break;
    case CUDA_ERROR_INVALID_VALUE:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_NOT_INITIALIZED:
      *name = "CUDA_ERROR_NOT_INITIALIZED";
      break;
    case CUDA_ERROR_INVALID_CONTEXT:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case CUDA_ERROR_INVALID_HANDLE:
      *name = "CUDA_ERROR_INVALID_HANDLE";
      break;
    case CUDA_ERROR_NOT_FOUND:
      *name = "CUDA_ERROR_NOT_FOUND";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      *name = "CUDA_ERROR_MISALIGNED_ADDRESS";
      break;
    case CUDA_ERROR_LAUNCH_FAILED:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      break;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
      break;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) { return cuGetErrorName(error, text); }

CUresult cuDeviceGetCount(int* count) {
  DriverScope scope(4, "cuDeviceGetCount");
  *count = static_cast<int>(TheDevice().contexts.size());
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  DriverScope scope(3, "cuDeviceGet");
  if (!Exists(ordinal)) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  DriverScope scope(5, "cuDeviceGetName");
  if (size > 0)
    std::snprintf(name, static_cast<size_t>(size), "%s",
                  TheDriver().device_name(static_cast<uint32_t>(device)));
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice /*device*/) {
  DriverScope scope(259, "cuDeviceTotalMem_v2");
  *bytes = size_t{16} << 30;
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute /*attribute*/, CUdevice /*device*/) {
  DriverScope scope(9, "cuDeviceGetAttribute");
  *value = 0;
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  DriverScope scope(482, "cuDeviceGetUuid");
  std::memcpy(uuid->bytes, TheDriver().device_uuid(static_cast<uint32_t>(device)),
              sizeof(uuid->bytes));
  return scope.Return(CheckInitialized());
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  DriverScope scope(673, "cuModuleGetLoadingMode");
  *mode = CU_MODULE_LAZY_LOADING;
  return scope.Return(CheckInitialized());
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  DriverScope scope(386, "cuDevicePrimaryCtxRetain");
  if (const CUresult result = CheckInitialized(); result != CUDA_SUCCESS) {
    return scope.Return(result);
  }
  if (!Exists(ordinal)) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  CUctx_st& primary = TheDevice().contexts[static_cast<size_t>(ordinal)];
  *context = &primary;
  bool create = false;
  {
    const std::lock_guard lock(TheDevice().mutex);
    create = primary.retains++ == 0;
  }
  if (create) {
    usleep(static_cast<useconds_t>(EnvNumber("XPU_FAKE_CONTEXT_MS", 0) * 1000));
    EmitContext(&primary, scope.start_ns());
    primary.created = true;
    Announce({.callback_id = 1, .context = &primary});  // CONTEXT_CREATED
  }
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  DriverScope scope(544, "cuDevicePrimaryCtxRelease_v2");
  if (!Exists(ordinal)) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  CUctx_st& primary = TheDevice().contexts[static_cast<size_t>(ordinal)];
  bool destroy = false;
  {
    const std::lock_guard lock(TheDevice().mutex);
    if (primary.retains == 0) return scope.Return(CUDA_ERROR_INVALID_CONTEXT);
    destroy = --primary.retains == 0;
  }
  if (destroy) DestroyContext(&primary, scope.start_ns());
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) {
  DriverScope scope(545, "cuDevicePrimaryCtxReset_v2");
  if (!Exists(ordinal)) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  CUctx_st& primary = TheDevice().contexts[static_cast<size_t>(ordinal)];
  if (!primary.created) return scope.Return(CUDA_SUCCESS);
  DestroyContext(&primary, scope.start_ns());
  FreeMemoryOf(primary.ordinal);
  const std::lock_guard lock(TheDevice().mutex);
  primary.retains = 0;
  primary.streams.clear();  // leaked: the program may still hold their handles
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  DriverScope scope(392, "cuDevicePrimaryCtxGetState");
  if (!Exists(ordinal)) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  *flags = 0;
  *active = TheDevice().contexts[static_cast<size_t>(ordinal)].created ? 1 : 0;
  return scope.Return(CheckInitialized());
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  DriverScope scope(304, "cuCtxGetCurrent");
  *context = TheDriver().current_context();
  return scope.Return(CheckInitialized());
}

CUresult cuCtxSetCurrent(CUcontext context) {
  DriverScope scope(303, "cuCtxSetCurrent");
  SetThreadContext(context);
  return scope.Return(CheckInitialized());
}

CUresult cuCtxPushCurrent(CUcontext context) {
  DriverScope scope(323, "cuCtxPushCurrent_v2");
  if (context == nullptr) return scope.Return(CUDA_ERROR_INVALID_CONTEXT);
  t_pushed_over.push_back(TheDriver().current_context());
  SetThreadContext(context);
  return scope.Return(CheckInitialized());
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  DriverScope scope(324, "cuCtxPopCurrent_v2");
  if (t_pushed_over.empty()) return scope.Return(CUDA_ERROR_INVALID_CONTEXT);
  *context = TheDriver().current_context();
  SetThreadContext(t_pushed_over.back());
  t_pushed_over.pop_back();
  return scope.Return(CheckInitialized());
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  DriverScope scope(795, "cuCtxGetDevice_v2");
  *device = static_cast<CUdevice>((context == nullptr ? CurrentContext() : context)->ordinal);
  return scope.Return(CheckContext());
}

CUresult cuCtxGetApiVersion(CUcontext /*context*/, unsigned int* version) {
  DriverScope scope(296, "cuCtxGetApiVersion");
  *version = CUDA_VERSION;
  return scope.Return(CheckContext());
}

CUresult cuProfilerStart() {
  DriverScope scope(308, "cuProfilerStart");
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuProfilerStop() {
  DriverScope scope(309, "cuProfilerStop");
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize() {
  DriverScope scope(17, "cuCtxSynchronize");
  return scope.Return(Synchronize(CurrentContext(), scope.correlation_id()));
}

// What cudaDeviceSynchronize calls: the capture copies.
CUresult cuCtxSynchronize_v2(CUcontext context) {
  const std::array<const void*, 1> params{context};  // as in cuCtxSynchronize_v2_params
  DriverScope scope(800, "cuCtxSynchronize_v2", params.data());
  return scope.Return(Synchronize(context, scope.correlation_id()));
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  DriverScope scope(312, "cuDeviceCanAccessPeer");
  if (!Exists(device) || !Exists(peer)) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  *can = device == peer ? 0 : 1;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int /*flags*/) {
  DriverScope scope(313, "cuCtxEnablePeerAccess");
  const bool other = peer != nullptr && peer != CurrentContext();
  return scope.Return(other ? CheckContext() : CUDA_ERROR_INVALID_DEVICE);
}

}  // extern "C"
