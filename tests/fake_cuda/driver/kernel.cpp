#include "kernel.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "../settings.h"

namespace xpu::fake_cuda {
namespace {

uint64_t Duration(const CUfunc_st& function, void** params) {
  const uint64_t fixed = EnvNumber("XPU_FAKE_KERNEL_NS", 0);
  if (fixed != 0) return fixed;
  uint64_t spin_ns = 0;
  if (function.spin_argument >= 0 && params != nullptr) {
    std::memcpy(&spin_ns, params[function.spin_argument], sizeof(spin_ns));
  }
  return KernelDurationNs(function.name, spin_ns);
}

}  // namespace

Work KernelWork(CUfunction function, const CUlaunchConfig& config, void** params) {
  Work work;
  Activity& kernel = work.activity;
  kernel.kind = ActivityKind::kKernel;
  kernel.name = function->name.c_str();
  const unsigned grid[3] = {config.gridDimX, config.gridDimY, config.gridDimZ};
  const unsigned block[3] = {config.blockDimX, config.blockDimY, config.blockDimZ};
  std::copy(grid, grid + 3, kernel.grid);
  std::copy(block, block + 3, kernel.block);
  kernel.dynamic_shared_bytes = config.sharedMemBytes;
  work.duration_ns = Duration(*function, params);
  work.function = function;
  return work;
}

CUlaunchConfig LaunchConfig(const unsigned (&grid)[3], const unsigned (&block)[3],
                            unsigned shared_bytes, CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = grid[2];
  config.blockDimX = block[0];
  config.blockDimY = block[1];
  config.blockDimZ = block[2];
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  return config;
}

CUresult LaunchKernel(CUfunction function, const CUlaunchConfig& config, void** params) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LoadFunction(function, Resolve(config.hStream)->capture != nullptr);
  Enqueue(config.hStream, KernelWork(function, config, params));
  return CUDA_SUCCESS;
}

CUresult LaunchHostFunction(CUstream stream, CUhostFn function, void* user_data) {
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return result;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  stream = Resolve(stream);
  const bool captured = stream->capture != nullptr;
  const uint64_t end_ns = Enqueue(stream, Work{});
  if (captured) return CUDA_SUCCESS;
  ++stream->host_calls;
  std::thread([=] {
    WaitUntil(*stream->context, end_ns);
    if (end_ns < stream->context->fault_ns.load()) function(user_data);
    --stream->host_calls;
  }).detach();
  return CUDA_SUCCESS;
}

}  // namespace xpu::fake_cuda
