// Initialisation, device and context.
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "../settings.h"
#include "calls.h"

using namespace xpu::fake_cuda;

namespace {

constexpr char kDeviceName[] = "XPU simulated GPU";

void EmitOverhead(uint32_t type, uint64_t start_ns) {
  Activity overhead{ActivityKind::kOverhead};
  overhead.type = type;
  overhead.start_ns = start_ns;
  overhead.end_ns = NowNs();
  overhead.correlation_id = TheDriver().current_correlation_id();
  Emit(overhead);
}

void EmitStream(uint32_t id, uint32_t flag, int32_t priority) {
  Activity stream{ActivityKind::kStream};
  stream.context_id = 1;
  stream.stream_id = id;
  stream.type = flag;
  stream.priority = priority;
  stream.correlation_id = TheDriver().current_correlation_id();
  Emit(stream);
}

// The records of a new context, in the order of every capture (transformer_shared, records 2 to
// 15): its seven own streams (7 is the null stream), overheads, the context, overheads.
void EmitContext(uint64_t start_ns) {
  constexpr uint32_t kDefault = 1;
  constexpr uint32_t kNonBlocking = 2;
  constexpr uint32_t kNull = 3;
  EmitStream(6, kDefault, 0);
  EmitStream(7, kNull, 0);
  for (uint32_t id = 8; id <= 11; ++id) EmitStream(id, kNonBlocking, 0);
  EmitStream(12, kDefault, -5);
  EmitOverhead(kOverheadInstrumentation, start_ns);
  EmitOverhead(kOverheadInstrumentation, start_ns);
  EmitOverhead(kOverheadResource, start_ns);
  Activity context{ActivityKind::kContext};
  context.context_id = 1;
  Emit(context);
  for (int i = 0; i < 3; ++i) EmitOverhead(kOverheadResource, start_ns);
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
  *version = CUDA_VERSION;
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
  *count = 1;
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  DriverScope scope(3, "cuDeviceGet");
  if (ordinal != 0) return scope.Return(CUDA_ERROR_INVALID_DEVICE);
  *device = 0;
  return scope.Return(CheckInitialized());
}

CUresult cuDeviceGetName(char* name, int size, CUdevice /*device*/) {
  DriverScope scope(5, "cuDeviceGetName");
  if (size > 0) std::snprintf(name, static_cast<size_t>(size), "%s", kDeviceName);
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

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice /*device*/) {
  DriverScope scope(482, "cuDeviceGetUuid");
  std::memcpy(uuid->bytes, "xpu simulated 00", sizeof(uuid->bytes));
  return scope.Return(CheckInitialized());
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  DriverScope scope(673, "cuModuleGetLoadingMode");
  *mode = CU_MODULE_LAZY_LOADING;
  return scope.Return(CheckInitialized());
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice /*device*/) {
  DriverScope scope(386, "cuDevicePrimaryCtxRetain");
  if (const CUresult result = CheckInitialized(); result != CUDA_SUCCESS) {
    return scope.Return(result);
  }
  Device& device = TheDevice();
  *context = &device.context;
  bool create = false;
  {
    const std::lock_guard lock(device.mutex);
    create = device.context.retains++ == 0;
  }
  if (create) {
    usleep(static_cast<useconds_t>(EnvNumber("XPU_FAKE_CONTEXT_MS", 0) * 1000));
    EmitContext(scope.start_ns());
    device.context.created = true;
    Announce({.callback_id = 1, .context = &device.context});  // CONTEXT_CREATED
  }
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice /*device*/) {
  DriverScope scope(544, "cuDevicePrimaryCtxRelease_v2");
  Device& device = TheDevice();
  bool destroy = false;
  {
    const std::lock_guard lock(device.mutex);
    if (device.context.retains == 0) return scope.Return(CUDA_ERROR_INVALID_CONTEXT);
    destroy = --device.context.retains == 0;
  }
  if (destroy) {
    SleepUntil(TailOfAll());
    EmitOverhead(kOverheadResource, scope.start_ns());  // driver_api, records 78 and 79
    EmitOverhead(kOverheadFlush, scope.start_ns());
    Announce({.callback_id = 2, .context = &device.context});  // CONTEXT_DESTROY_STARTING
    device.context.created = false;
  }
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice /*device*/, unsigned int* flags, int* active) {
  DriverScope scope(388, "cuDevicePrimaryCtxGetState");
  *flags = 0;
  *active = TheDevice().context.created ? 1 : 0;
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

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext /*context*/) {
  DriverScope scope(795, "cuCtxGetDevice_v2");
  *device = 0;
  return scope.Return(CheckContext());
}

CUresult cuCtxGetApiVersion(CUcontext /*context*/, unsigned int* version) {
  DriverScope scope(296, "cuCtxGetApiVersion");
  *version = CUDA_VERSION;
  return scope.Return(CheckContext());
}

CUresult cuCtxSynchronize() {
  DriverScope scope(17, "cuCtxSynchronize");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  Activity sync{ActivityKind::kSync};
  sync.type = kContextSync;
  sync.context_id = 1;
  sync.stream_id = UINT32_MAX;  // CUPTI_SYNCHRONIZATION_INVALID_VALUE
  sync.correlation_id = scope.correlation_id();
  sync.start_ns = NowNs();
  SleepUntil(TailOfAll());
  sync.end_ns = NowNs();
  Emit(sync);
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
