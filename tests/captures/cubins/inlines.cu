// What inlines.cubin is made of (nvcc -lineinfo -cubin -arch=sm_90, CUDA 13.0, in /app). Its
// kernels have names of stall_kernels.cu, which the simulated device runs with this code.
__device__ __forceinline__ float Square(float x) {
  return x * x + 1.5f;  // 4
}
__device__ __forceinline__ float Twice(float x) {
  return Square(x) * Square(x + 1);  // 7
}
__device__ __noinline__ float Called(float x, int n) {
  for (int i = 0; i < n; ++i) x = x * 0.99f + 0.1f;  // 10
  return x;
}
__global__ void fma_chain(float* values, int n) {
  float x = values[threadIdx.x];  // 14
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    x = Twice(x);  // 17
  }
  values[threadIdx.x] = x;  // 19
}
__global__ void slow_warp(float* values, int n) {
  float x = values[threadIdx.x];  // 22
#pragma unroll 1
  for (int i = 0; i < n; ++i) x = Called(x, n);  // 24
  values[threadIdx.x] = Square(x);               // 25
}
