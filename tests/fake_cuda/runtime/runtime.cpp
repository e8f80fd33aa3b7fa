#include "runtime.h"

#include <map>
#include <mutex>

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

void AskAboutDevice() {
  CUmoduleLoadingMode mode;
  int number = 0;
  CUdevice device = 0;
  char name[256];
  size_t bytes = 0;
  CUuuid uuid;
  cuModuleGetLoadingMode(&mode);
  cuDeviceGetCount(&number);
  cuDeviceGet(&device, 0);
  cuDeviceGetName(name, sizeof(name), device);
  cuDeviceTotalMem(&bytes, device);
  for (int i = 0; i < 88; ++i) cuDeviceGetAttribute(&number, i + 1, device);
  cuDeviceGetUuid(&uuid, device);
  for (int i = 88; i < 111; ++i) cuDeviceGetAttribute(&number, i + 1, device);
}

}  // namespace

void EnsureInitialized() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (cuInit(0) == CUDA_SUCCESS) AskAboutDevice();
  });
}

void EnsureContext() {
  static thread_local bool attached = false;
  if (attached) return;
  attached = true;
  CUcontext context = nullptr;
  CUdevice device = 0;
  unsigned version = 0;
  cuCtxGetCurrent(&context);
  if (context != nullptr) return;
  cuCtxSetCurrent(xpu_fake_driver()->primary_context());
  static std::once_flag once;
  bool first = false;
  std::call_once(once, [&] {
    first = true;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxGetCurrent(&context);
    cuCtxGetDevice_v2(&device, context);
  });
  if (!first) cuCtxGetApiVersion(xpu_fake_driver()->primary_context(), &version);
}

CUfunction FindKernel(const void* host_function) {
  EnsureInitialized();
  Kernels& kernels = TheKernels();
  const std::lock_guard lock(kernels.mutex);
  const auto known = kernels.by_host_function.find(host_function);
  if (known != kernels.by_host_function.end()) return known->second;
  Dl_info info;
  if (dladdr(host_function, &info) == 0 || info.dli_saddr != host_function) return nullptr;
  if (kernels.library == nullptr) {
    cuLibraryLoadData(&kernels.library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  CUkernel kernel = nullptr;
  cuLibraryGetKernel(&kernel, kernels.library, info.dli_sname);
  return kernels.by_host_function[host_function] = reinterpret_cast<CUfunction>(kernel);
}

}  // namespace xpu::fake_cuda
