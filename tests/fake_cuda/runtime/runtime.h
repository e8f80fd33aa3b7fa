// Of every runtime function: its scope and how it reaches device and context. The nesting is that
// of the captures: what a runtime call does, it does through driver calls that have callbacks of
// their own and its correlation id.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "../hooks.h"

namespace xpu::fake_cuda {

// The first runtime call of the process: cuInit and the 117 driver calls by which cudart learns
// about the device (transformer_shared, correlation ids 1 to 117: they are not inside the runtime
// call that causes them).
void EnsureInitialized();

// Inside the first runtime call of each thread: cudart makes the context of the thread's device
// current, the first thread of all makes it (transformer_threads).
void EnsureContext();

// cudaSetDevice: the thread's device from now on.
void UseDevice(int device);
int CurrentDevice();
// cudaDeviceReset: the next call of each thread begins anew.
void ForgetContext();

// The driver's handle of a kernel, by the address of its host function; nullptr: none of ours. At
// first use cuLibraryLoadData and cuLibraryGetKernel, each outside the launch and with an id of
// its own (transformer_shared, ids 128 and 129).
CUfunction FindKernel(const void* host_function);

// The driver's handle of the program's code; cuLibraryLoadData at first use.
CUlibrary TheLibrary();

struct NoContext {};  // for functions that need none

class RuntimeScope {
 public:
  RuntimeScope(NoContext /*tag*/, uint32_t callback_id, const char* name)
      : scope_((EnsureInitialized(), *xpu_fake_driver()), kRuntimeDomain, callback_id, name) {}
  RuntimeScope(uint32_t callback_id, const char* name, const void* params = nullptr,
               const char* symbol = nullptr)
      : scope_((EnsureInitialized(), *xpu_fake_driver()), kRuntimeDomain, callback_id, name, params,
               symbol) {
    EnsureContext();
  }
  cudaError_t Return(CUresult result) { return scope_.Return(static_cast<cudaError_t>(result)); }

 private:
  ApiScope scope_;
};

}  // namespace xpu::fake_cuda
