// The first program of every CUDA tutorial, with blocking copies from pageable memory.
//   --n N (floats) --iterations I
#include <vector>

#include "gpu.h"

__global__ void vector_add_kernel(const float* a, const float* b, float* sum, int count) {
#ifdef __CUDACC__
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
#endif
}

XPU_FRAME void CopyIn(float* device, const std::vector<float>& host, workload::Tally* tally) {
  XPU_CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  tally->CountCopy("HtoD", host.size() * sizeof(float));
}

XPU_FRAME void CopyOut(std::vector<float>* host, const float* device, workload::Tally* tally) {
  XPU_CUDA(cudaMemcpy(host->data(), device, host->size() * sizeof(float), cudaMemcpyDeviceToHost));
  tally->CountCopy("DtoH", host->size() * sizeof(float));
}

XPU_FRAME void AddVectors(const float* a, const float* b, float* sum, int count,
                          workload::Tally* tally) {
  constexpr int kBlockSize = 256;
  const dim3 grid(static_cast<unsigned>((count + kBlockSize - 1) / kBlockSize));
  XPU_LAUNCH(tally, "main;AddVectors", vector_add_kernel, grid, dim3(kBlockSize), nullptr, a, b,
             sum, count);
}

int main(int argc, char** argv) {
  const uint64_t count = workload::OptionNumber(argc, argv, "--n", 1 << 16);
  const uint64_t iterations = workload::OptionNumber(argc, argv, "--iterations", 1);
  std::vector<float> a(count);
  std::vector<float> b(count);
  std::vector<float> sum(count);
  for (uint64_t i = 0; i < count; ++i) {
    a[i] = static_cast<float>(i % 1000);
    b[i] = 2.0f * a[i];
  }
  float* device[3];
  for (float*& pointer : device) {
    XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&pointer), count * sizeof(float)));
  }
  workload::Tally tally;
  for (uint64_t i = 0; i < iterations; ++i) {
    CopyIn(device[0], a, &tally);
    CopyIn(device[1], b, &tally);
    AddVectors(device[0], device[1], device[2], static_cast<int>(count), &tally);
    CopyOut(&sum, device[2], &tally);
  }
  workload::JsonLine json;
  json.Add("workload", "vector_add");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  tally.Write(&json);
#ifdef __CUDACC__
  bool correct = true;
  for (uint64_t i = 0; i < count; ++i) correct = correct && sum[i] == a[i] + b[i];
  json.AddBool("correct", correct);
#endif
  for (float* pointer : device) XPU_CUDA(cudaFree(pointer));
  workload::PrintLine(json.Finish());
  return 0;
}
