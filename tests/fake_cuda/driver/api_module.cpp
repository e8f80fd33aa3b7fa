// Modules and libraries. Every name is a kernel of every library; a module has the names that its
// image contains.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include <cxxabi.h>

#include "../settings.h"
#include "calls.h"
#include "kernel.h"

using namespace xpu::fake_cuda;

namespace {

// Index of the last parameter when it is an unsigned long long (workloads pass how long the kernel
// shall run), else -1.
int SpinArgument(const std::string& mangled) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (demangled == nullptr) return -1;
  const std::string name(demangled);
  std::free(demangled);
  const size_t open = name.rfind('(');
  if (open == std::string::npos || !name.ends_with("unsigned long long)")) return -1;
  return static_cast<int>(std::count(name.begin() + static_cast<ptrdiff_t>(open), name.end(), ','));
}

CUfunction FindFunction(CUmodule module, const char* name) {
  const std::lock_guard lock(TheDevice().mutex);
  std::unique_ptr<CUfunc_st>& function = module->functions[name];
  if (function == nullptr) {
    function = std::make_unique<CUfunc_st>();
    function->name = name;
    function->module = module;
    function->spin_argument = SpinArgument(function->name);
  }
  return function.get();
}

CUmodule NewModule(const void* image) {
  auto* module = new CUmod_st;
  if (image != nullptr) module->image = static_cast<const char*>(image);
  const std::lock_guard lock(TheDevice().mutex);
  module->id = TheDevice().next_module_id++;
  return module;
}

void AnnounceModule(uint32_t callback_id, CUmodule module) {
  Announce({.callback_id = callback_id, .context = CurrentContext(), .module_id = module->id});
}

// XPU_FAKE_JIT_NS: what the documentation says of a module that has no code for the device. The
// call waits for it.
void CompileModule(CUmodule module) {
  const uint64_t compile_ns = EnvNumber("XPU_FAKE_JIT_NS", 0);
  if (compile_ns == 0) return;
  const std::string path = "ComputeCache/" + std::to_string(module->id);
  Activity operation{ActivityKind::kJit};
  operation.name = path.c_str();
  operation.bytes = 4096;
  operation.jit_id = module->id;
  operation.correlation_id = TheDriver().current_correlation_id();
  operation.start_ns = NowNs();
  for (const auto& [type, duration_ns] :
       {std::pair{kJitCompile, compile_ns}, std::pair{kJitCacheStore, compile_ns / 10}}) {
    operation.type = type;
    operation.end_ns = operation.start_ns + duration_ns;
    Emit(operation);
    operation.start_ns = operation.end_ns;
  }
  const uint64_t now_ns = NowNs();
  const uint64_t left_ns = operation.end_ns - std::min(now_ns, operation.end_ns);
  std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns));
}

}  // namespace

// As graph_nodes and transformer_shared show: MODULE_LOADED at the first launch from a library,
// then the overhead of loading the function, MODULE_PROFILED at every launch that is not captured.
void xpu::fake_cuda::LoadFunction(CUfunction function, bool captured) {
  bool load_module = false;
  bool load_function = false;
  {
    const std::lock_guard lock(TheDevice().mutex);
    load_module = !std::exchange(function->module->announced, true);
    load_function = !std::exchange(function->loaded, true);
  }
  if (load_module) {
    CompileModule(function->module);
    AnnounceModule(6, function->module);
  }
  if (load_function) {
    Activity overhead{ActivityKind::kOverhead};
    overhead.type = kOverheadLazyLoading;
    overhead.correlation_id = TheDriver().current_correlation_id();
    overhead.start_ns = NowNs();
    overhead.end_ns = overhead.start_ns + 1;
    Emit(overhead);
  }
  if (!captured) AnnounceModule(8, function->module);
}

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  DriverScope scope(19, "cuModuleLoadData");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  if (image == nullptr) return scope.Return(CUDA_ERROR_INVALID_VALUE);
  *module = NewModule(image);
  (*module)->announced = true;
  CompileModule(*module);
  AnnounceModule(6, *module);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  DriverScope scope(23, "cuModuleGetFunction");
  if (module->image.find(name) == std::string::npos) return scope.Return(CUDA_ERROR_NOT_FOUND);
  *function = FindFunction(module, name);
  // driver_api: the function is loaded here, not at its first launch.
  (*function)->loaded = true;
  Activity overhead{ActivityKind::kOverhead};
  overhead.type = kOverheadLazyLoading;
  overhead.correlation_id = scope.correlation_id();
  overhead.start_ns = scope.start_ns();
  overhead.end_ns = NowNs();
  Emit(overhead);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule module) {
  DriverScope scope(22, "cuModuleUnload");
  WaitForAll(CurrentContext());
  AnnounceModule(7, module);
  delete module;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* /*code*/, CUjit_option* /*jit_options*/,
                           void** /*jit_values*/, unsigned int /*jit_count*/,
                           CUlibraryOption* /*library_options*/, void** /*library_values*/,
                           unsigned int /*library_count*/) {
  DriverScope scope(678, "cuLibraryLoadData");
  *library = reinterpret_cast<CUlibrary>(NewModule(nullptr));
  return scope.Return(CheckInitialized());
}

// A __device__ variable is a host variable here, and cudart knows its address.
CUresult cuLibraryGetGlobal(CUdeviceptr* /*pointer*/, size_t* /*bytes*/, CUlibrary /*library*/,
                            const char* /*name*/) {
  DriverScope scope(684, "cuLibraryGetGlobal");
  return scope.Return(CheckInitialized());
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  DriverScope scope(681, "cuLibraryGetKernel");
  *kernel = reinterpret_cast<CUkernel>(FindFunction(reinterpret_cast<CUmodule>(library), name));
  return scope.Return(CheckInitialized());
}

}  // extern "C"
