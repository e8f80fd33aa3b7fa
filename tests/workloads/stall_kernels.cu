// Kernels whose source lines wait for known reasons, each on a line of its own that a test finds by
// the comment at its end (samples of program counters, xpu-record --gpu-samples).
//   --kernel NAME (all)  --launches N  --scale K (work of a launch, in thousands of iterations)
#include <string>
#include <vector>

#include "gpu.h"

#ifdef __CUDACC__
__device__ __forceinline__ float Polynomial(float x) {
  return x * 0.999f + 0.5f;  // line: inlined function
}
#endif

// Of two loops that do the same, one goes round three times as often.
__global__ void two_loops(float* values, int count) {
#ifdef __CUDACC__
  float x = values[threadIdx.x];
#pragma unroll 8
  for (int i = 0; i < 3 * count; ++i) x = x * 0.999f + 0.5f;  // line: three quarters
  x += values[threadIdx.x + 32];
#pragma unroll 8
  for (int i = 0; i < count; ++i) x = x * 0.998f + 0.25f;  // line: one quarter
  values[threadIdx.x] = x;
#endif
}

// Each load needs the result of the one before: long scoreboard.
__global__ void pointer_chase(const unsigned* next, unsigned* last, int count) {
#ifdef __CUDACC__
  unsigned at = threadIdx.x;
#pragma unroll 4
  for (int i = 0; i < count; ++i) at = __ldcg(&next[at]);  // line: pointer chase
  last[threadIdx.x] = at;
#endif
}

// Each instruction needs the result of the one before it, which takes a fixed time: wait.
__global__ void fma_chain(float* values, int count) {
#ifdef __CUDACC__
  float x = values[threadIdx.x];
#pragma unroll 64
  for (int i = 0; i < count; ++i) x = Polynomial(x);  // line: dependent
  values[threadIdx.x] = x;
#endif
}

// All threads of a warp load from one bank of shared memory.
__global__ void bank_conflicts(unsigned* values, int count) {
#ifdef __CUDACC__
  __shared__ unsigned shared[32 * 32];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) shared[i] = (i + 32) % (32 * 32);
  __syncthreads();
  unsigned at = (threadIdx.x % 32) * 32;
#pragma unroll 4
  for (int i = 0; i < count; ++i) at = shared[at];  // line: bank conflict
  values[threadIdx.x] = at;
#endif
}

// One warp of eight works, the others wait for it.
__global__ void slow_warp(float* values, int count) {
#ifdef __CUDACC__
  float x = values[threadIdx.x];
  for (int round = 0; round < 16; ++round) {  // line: rounds
    if (threadIdx.x < 32) {
#pragma unroll 8
      for (int i = 0; i < count; ++i) x = x * 0.999f + 0.5f;  // line: slow warp
    }
    __syncthreads();
  }
  values[threadIdx.x] = x;
#endif
}

// Half of each warp does one thing, then the other half another.
__global__ void divergence(float* values, int count) {
#ifdef __CUDACC__
  float x = values[threadIdx.x];
  if (threadIdx.x % 2 == 0) {
#pragma unroll 8
    for (int i = 0; i < count; ++i) x = x * 0.999f + 0.5f;  // line: even threads
  } else {
#pragma unroll 8
    for (int i = 0; i < count; ++i) x = x * 0.998f + 0.25f;  // line: odd threads
  }
  values[threadIdx.x] = x;
#endif
}

struct Buffers {
  float* values = nullptr;
  unsigned* links = nullptr;
  unsigned* last = nullptr;
};

XPU_FRAME void LaunchFloats(const char* path, const char* name, void (*kernel)(float*, int),
                            unsigned threads, const Buffers& buffers, int count,
                            workload::Tally* tally) {
  XPU_LAUNCH_UNCOUNTED(kernel, dim3(1056), dim3(threads), nullptr, buffers.values, count);
  tally->CountLaunch(path, name);
}

XPU_FRAME void LaunchOne(const std::string& name, const Buffers& buffers, int count,
                         workload::Tally* tally) {
  const char* path = "main;LaunchOne;LaunchFloats";
  if (name == "two_loops") LaunchFloats(path, "two_loops", two_loops, 32, buffers, count, tally);
  if (name == "fma_chain") LaunchFloats(path, "fma_chain", fma_chain, 32, buffers, count, tally);
  if (name == "slow_warp")
    LaunchFloats(path, "slow_warp", slow_warp, 256, buffers, count / 16, tally);
  if (name == "divergence") LaunchFloats(path, "divergence", divergence, 32, buffers, count, tally);
  if (name == "pointer_chase") {
    XPU_LAUNCH(tally, "main;LaunchOne", pointer_chase, dim3(132), dim3(32), nullptr, buffers.links,
               buffers.last, count / 16);
  }
  if (name == "bank_conflicts") {
    XPU_LAUNCH(tally, "main;LaunchOne", bank_conflicts, dim3(264), dim3(256), nullptr, buffers.last,
               count / 32);
  }
}

int main(int argc, char** argv) {
  const std::string only = workload::OptionString(argc, argv, "--kernel", "all");
  const uint64_t launches = workload::OptionNumber(argc, argv, "--launches", 20);
  const int count = static_cast<int>(workload::OptionNumber(argc, argv, "--scale", 100) * 1000);
  constexpr size_t kLinks = size_t{1} << 24;  // 64 MB: more than the cache of the device
  Buffers buffers;
  std::vector<unsigned> links(kLinks);
  // A walk that the hardware cannot foresee: the step is odd, so it visits all.
  for (size_t i = 0; i < kLinks; ++i) links[i] = static_cast<unsigned>((i * 5 + 12345677) % kLinks);
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&buffers.values), 4096 * sizeof(float)));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&buffers.last), 4096 * sizeof(unsigned)));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&buffers.links), kLinks * sizeof(unsigned)));
  XPU_CUDA(
      cudaMemcpy(buffers.links, links.data(), kLinks * sizeof(unsigned), cudaMemcpyHostToDevice));
  XPU_CUDA(cudaMemset(buffers.values, 0, 4096 * sizeof(float)));
  workload::Tally tally;
  tally.CountCopy("HtoD", kLinks * sizeof(unsigned));
  tally.CountMemset(4096 * sizeof(float));
  const uint64_t start_ns = workload::ClockNs(CLOCK_MONOTONIC);
  for (uint64_t i = 0; i < launches; ++i) {
    for (const char* name :
         {"two_loops", "pointer_chase", "fma_chain", "bank_conflicts", "slow_warp", "divergence"}) {
      if (only == "all" || only == name) LaunchOne(name, buffers, count, &tally);
    }
  }
  XPU_CUDA(cudaDeviceSynchronize());
  tally.CountSync();
  workload::JsonLine json;
  json.Add("workload", "stall_kernels");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("loop_ns", workload::ClockNs(CLOCK_MONOTONIC) - start_ns);
  tally.Write(&json);
  workload::PrintLine(json.Finish());
  return 0;
}
