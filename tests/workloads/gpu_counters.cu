// Work whose hardware counters are known: nothing, a copy of a known number of bytes, kernels of a
// known length with pauses between them, and tensor cores at work.
//   --idle-ms M --stream-mb N --copies C --spins S --spin-ms M --tensor-launches T
#include "gpu.h"

#ifdef __CUDACC__
#include <mma.h>
#endif

struct alignas(16) Part {
  float values[4];
};

__global__ void stream_kernel(const Part* from, Part* to, unsigned long long count) {
#ifdef __CUDACC__
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = from[i];
  }
#endif
}

__global__ void spin_kernel(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

// Each warp multiplies the same two fragments again and again.
__global__ void tensor_kernel(float* out, int rounds) {
#ifdef __CUDACC__
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
  wmma::fill_fragment(a, __float2half(0.5f));
  wmma::fill_fragment(b, __float2half(0.25f));
  for (auto& one : sum) wmma::fill_fragment(one, 0.0f);
  for (int i = 0; i < rounds; ++i) {
    for (auto& one : sum) wmma::mma_sync(one, a, b, one);
  }
  for (auto& one : sum) {
    if (one.x[0] < 0) out[threadIdx.x] = one.x[0];
  }
#endif
}

XPU_FRAME void CopyOnGpu(const Part* from, Part* to, uint64_t bytes, workload::Tally* tally) {
  XPU_LAUNCH(tally, "main;CopyOnGpu", stream_kernel, dim3(1056), dim3(512), nullptr, from, to,
             bytes / sizeof(Part));
}

XPU_FRAME void Spin(uint64_t milliseconds, workload::Tally* tally) {
  XPU_LAUNCH(tally, "main;Spin", spin_kernel, dim3(264), dim3(256), nullptr,
             milliseconds * 1'000'000);
  XPU_CUDA(cudaDeviceSynchronize());
}

XPU_FRAME void UseTensorCores(float* out, workload::Tally* tally) {
  XPU_LAUNCH(tally, "main;UseTensorCores", tensor_kernel, dim3(264), dim3(256), nullptr, out,
             20'000);
}

int main(int argc, char** argv) {
  const uint64_t idle_ms = workload::OptionNumber(argc, argv, "--idle-ms", 300);
  const uint64_t bytes = workload::OptionNumber(argc, argv, "--stream-mb", 1) << 20;
  const uint64_t copies = workload::OptionNumber(argc, argv, "--copies", 10);
  const uint64_t spins = workload::OptionNumber(argc, argv, "--spins", 3);
  const uint64_t spin_ms = workload::OptionNumber(argc, argv, "--spin-ms", 10);
  const uint64_t tensor_launches = workload::OptionNumber(argc, argv, "--tensor-launches", 2);
  const auto pause = [](uint64_t ms) { usleep(static_cast<useconds_t>(ms * 1000)); };
  workload::Tally tally;
  Part* from = nullptr;
  Part* to = nullptr;
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&from), bytes));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&to), bytes));
  XPU_CUDA(cudaMemset(from, 1, bytes));
  XPU_CUDA(cudaDeviceSynchronize());
  pause(idle_ms);
  for (uint64_t i = 0; i < copies; ++i) CopyOnGpu(from, to, bytes, &tally);
  XPU_CUDA(cudaDeviceSynchronize());
  for (uint64_t i = 0; i < spins; ++i) {
    pause(30);
    Spin(spin_ms, &tally);
  }
  pause(30);
  for (uint64_t i = 0; i < tensor_launches; ++i) {
    UseTensorCores(reinterpret_cast<float*>(to), &tally);
  }
  XPU_CUDA(cudaDeviceSynchronize());
  pause(30);
  XPU_CUDA(cudaFree(from));
  XPU_CUDA(cudaFree(to));
  workload::JsonLine json;
  json.Add("workload", "gpu_counters");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("bytes_read", bytes * copies);
  json.Add("bytes_written", bytes * (copies + 1));
  json.Add("idle_ns", idle_ms * 1'000'000);
  json.Add("spins", spins);
  json.Add("spin_ns", spin_ms * 1'000'000);
  tally.Write(&json);
  workload::PrintLine(json.Finish());
  return 0;
}
