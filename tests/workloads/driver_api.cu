// The driver API alone, without cudart: a module from PTX text, cuLaunchKernel and
// cuLaunchKernelEx. Compiled by g++ always (nvcc would add cudart's registration); XPU_REAL_GPU
// says that kernels run.
//   --launches N (of each of the two)
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda.h>

#include "json_line.h"
#include "puppet.h"
#include "tally.h"

namespace {

// Version and target are the oldest that CUDA 13 still takes, so any later driver compiles them.
constexpr char kPtx[] = R"ptx(
.version 6.4
.target sm_75
.address_size 64

.visible .entry ptx_scale_kernel(.param .u64 data, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r3, [%rd4];
  shl.b32 %r4, %r3, 1;
  st.global.u32 [%rd4], %r4;
DONE:
  ret;
}

.visible .entry ptx_offset_kernel(.param .u64 data, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r3, [%rd4];
  add.s32 %r4, %r3, 3;
  st.global.u32 [%rd4], %r4;
DONE:
  ret;
}
)ptx";

constexpr unsigned kThreads = 128;

void Check(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, call, name == nullptr ? "?" : name);
  std::exit(1);
}
#define XPU_CU(call) Check(call, #call, __LINE__)

struct Driver {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  CUfunction offset = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr data = 0;
  std::vector<unsigned> host = std::vector<unsigned>(kThreads, 1);
  workload::Tally tally;

  size_t bytes() const { return host.size() * sizeof(unsigned); }
};

}  // namespace

XPU_FRAME void LoadModule(Driver* driver) {
  XPU_CU(cuModuleLoadData(&driver->module, kPtx));
  XPU_CU(cuModuleGetFunction(&driver->scale, driver->module, "ptx_scale_kernel"));
  XPU_CU(cuModuleGetFunction(&driver->offset, driver->module, "ptx_offset_kernel"));
}

XPU_FRAME void LaunchScale(Driver* driver) {
  unsigned count = kThreads;
  void* args[] = {&driver->data, &count};
  XPU_CU(cuLaunchKernel(driver->scale, 1, 1, 1, kThreads, 1, 1, 0, driver->stream, args, nullptr));
  driver->tally.CountLaunch("main;LaunchScale", "ptx_scale_kernel");
}

XPU_FRAME void LaunchOffset(Driver* driver) {
  unsigned count = kThreads;
  void* args[] = {&driver->data, &count};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = driver->stream;
  XPU_CU(cuLaunchKernelEx(&config, driver->offset, args, nullptr));
  driver->tally.CountLaunch("main;LaunchOffset", "ptx_offset_kernel");
}

XPU_FRAME void MoveData(Driver* driver, bool in) {
  const size_t bytes = driver->bytes();
  if (in) {
    XPU_CU(cuMemsetD8Async(driver->data, 0, bytes, driver->stream));
    XPU_CU(cuMemcpyHtoDAsync(driver->data, driver->host.data(), bytes, driver->stream));
    driver->tally.CountMemset(bytes);
    driver->tally.CountCopy("HtoD", bytes);
  } else {
    XPU_CU(cuMemcpyDtoHAsync(driver->host.data(), driver->data, bytes, driver->stream));
    XPU_CU(cuStreamSynchronize(driver->stream));
    driver->tally.CountCopy("DtoH", bytes);
    driver->tally.CountSync();
  }
}

int main(int argc, char** argv) {
  const uint64_t launches = workload::OptionNumber(argc, argv, "--launches", 10);
  Driver driver;
  XPU_CU(cuInit(0));
  XPU_CU(cuDeviceGet(&driver.device, 0));
  XPU_CU(cuDevicePrimaryCtxRetain(&driver.context, driver.device));
  XPU_CU(cuCtxSetCurrent(driver.context));
  LoadModule(&driver);
  XPU_CU(cuStreamCreate(&driver.stream, CU_STREAM_NON_BLOCKING));
  XPU_CU(cuMemAlloc(&driver.data, driver.bytes()));
  MoveData(&driver, true);
  for (uint64_t i = 0; i < launches; ++i) {
    LaunchScale(&driver);
    LaunchOffset(&driver);
  }
  MoveData(&driver, false);

  XPU_CU(cuMemFree(driver.data));
  XPU_CU(cuStreamDestroy(driver.stream));
  XPU_CU(cuModuleUnload(driver.module));
  XPU_CU(cuDevicePrimaryCtxRelease(driver.device));
  workload::JsonLine json;
  json.Add("workload", "driver_api");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  driver.tally.Write(&json);
#ifdef XPU_REAL_GPU
  unsigned expected = 1;
  for (uint64_t i = 0; i < launches; ++i) expected = expected * 2 + 3;
  json.AddBool("correct", driver.host[0] == expected);
#endif
  workload::PrintLine(json.Finish());
  return 0;
}
