#include "runtime.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include <dlfcn.h>

namespace xpu::fake_cuda {
namespace {

struct Kernels {
  std::mutex mutex;
  CUlibrary library = nullptr;
  std::map<const void*, CUfunction> by_host_function;
};

Kernels& TheKernels() {
  static auto* const kernels = new Kernels;
  return *kernels;
}

void LoadLibrary(Kernels* kernels) {
  if (kernels->library != nullptr) return;
  cuLibraryLoadData(&kernels->library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

void AskAboutDevice(int ordinal) {
  int number = 0;
  CUdevice device = 0;
  char name[256];
  size_t bytes = 0;
  CUuuid uuid;
  cuDeviceGet(&device, ordinal);
  cuDeviceGetName(name, sizeof(name), device);
  cuDeviceTotalMem(&bytes, device);
  for (int i = 0; i < 88; ++i) cuDeviceGetAttribute(&number, i + 1, device);
  cuDeviceGetUuid(&uuid, device);
  for (int i = 88; i < 111; ++i) cuDeviceGetAttribute(&number, i + 1, device);
}

void AskAboutDevices() {
  CUmoduleLoadingMode mode;
  int count = 0;
  cuModuleGetLoadingMode(&mode);
  cuDeviceGetCount(&count);
  for (int i = 0; i < count; ++i) AskAboutDevice(i);
}

// Which devices' contexts cudart holds; `generation` counts the resets.
struct Contexts {
  std::mutex mutex;
  std::set<int> retained;
  std::atomic<unsigned> generation{1};
};

Contexts& TheContexts() {
  static auto* const contexts = new Contexts;
  return *contexts;
}

thread_local int t_device = 0;
thread_local std::map<int, unsigned> t_attached;  // generation in which this thread saw the device

}  // namespace

void EnsureInitialized() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (cuInit(0) == CUDA_SUCCESS) AskAboutDevices();
  });
}

void EnsureContext() {
  Contexts& contexts = TheContexts();
  unsigned& attached = t_attached[t_device];
  if (attached == contexts.generation.load()) return;
  attached = contexts.generation.load();
  const Driver& driver = *xpu_fake_driver();
  if (driver.device_count() == 0) return;
  CUcontext context = nullptr;
  CUdevice device = 0;
  unsigned version = 0;
  cuCtxGetCurrent(&context);
  const CUcontext primary = driver.primary_context(t_device);
  // A context that the program has made current itself is used as it is.
  if (context != nullptr && driver.context_uid(context) != 0 && t_attached.size() == 1) return;
  cuCtxSetCurrent(primary);
  bool first = false;
  {
    const std::lock_guard lock(contexts.mutex);
    first = contexts.retained.insert(t_device).second;
    if (first) {
      cuDevicePrimaryCtxRetain(&context, t_device);
      cuCtxGetCurrent(&context);
      cuCtxGetDevice_v2(&device, context);
    }
  }
  if (!first) cuCtxGetApiVersion(primary, &version);
}

int CurrentDevice() { return t_device; }

void UseDevice(int device) {
  if (device == t_device && t_attached.contains(device)) return;
  t_device = device;
  const bool known = t_attached.contains(device);
  EnsureContext();
  if (known) cuCtxSetCurrent(xpu_fake_driver()->primary_context(device));
}

void ForgetContext() {
  Contexts& contexts = TheContexts();
  const std::lock_guard lock(contexts.mutex);
  contexts.retained.erase(t_device);
  ++contexts.generation;
}

CUlibrary TheLibrary() {
  Kernels& kernels = TheKernels();
  const std::lock_guard lock(kernels.mutex);
  LoadLibrary(&kernels);
  return kernels.library;
}

CUfunction FindKernel(const void* host_function) {
  EnsureInitialized();
  Kernels& kernels = TheKernels();
  const std::lock_guard lock(kernels.mutex);
  const auto known = kernels.by_host_function.find(host_function);
  if (known != kernels.by_host_function.end()) return known->second;
  Dl_info info;
  if (dladdr(host_function, &info) == 0 || info.dli_saddr != host_function) return nullptr;
  LoadLibrary(&kernels);
  CUkernel kernel = nullptr;
  cuLibraryGetKernel(&kernel, kernels.library, info.dli_sname);
  return kernels.by_host_function[host_function] = reinterpret_cast<CUfunction>(kernel);
}

}  // namespace xpu::fake_cuda
