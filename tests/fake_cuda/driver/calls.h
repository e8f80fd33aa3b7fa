// Of every driver function: its scope, and what it checks.
#pragma once

#include "device.h"

namespace xpu::fake_cuda {

CUresult CheckInitialized();
void SetThreadContext(CUcontext context);

// Loads the injected library in the first call of the process. False: this was done before.
bool InitializeOnce();

// The callback ids are those of CUDA 13.0; vector_add, transformer_shared, graph_nodes and
// driver_api in tests/captures/cupti show each one that the real calls there use.
class DriverScope : public ApiScope {
 public:
  DriverScope(uint32_t callback_id, const char* name, const void* params = nullptr,
              const char* symbol = nullptr)
      : ApiScope(TheDriver(), kDriverDomain, callback_id, name, params, symbol) {}
};

}  // namespace xpu::fake_cuda
