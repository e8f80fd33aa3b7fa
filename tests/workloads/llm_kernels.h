// The kernels of llm_decode.cu. Matrices are row by row; a matrix with `rows` rows of `columns`
// weights makes `rows` outputs of `columns` inputs. `count` tokens are worked on at once; the first
// of them stands at *position in the text, which is read from device memory, so that a CUDA graph
// of these launches serves every step.
#pragma once

#include "gpu.h"

#ifndef __CUDACC__
// Plain C++ compiles the kernels as functions that nothing calls.
#include <cmath>
#define __device__
#define __shared__ static
const dim3 threadIdx, blockIdx, blockDim, gridDim;
inline void __syncthreads() {}
inline float __shfl_xor_sync(unsigned /*lanes*/, float value, int /*lane*/) { return value; }
#endif

constexpr int kWarp = 32;
constexpr int kBlock = 128;  // threads of a block in all kernels but matmul_kernel
constexpr int kTile = 16;
constexpr int kMaxHeadDim = 2 * kBlock;

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Of the values of all threads of a block of kBlock; every thread gets the result.
template <typename Combine>
__device__ float BlockReduce(float value, Combine combine) {
  __shared__ float of_warp[kBlock / kWarp];
  for (int lane = kWarp / 2; lane > 0; lane /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, lane));
  }
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kBlock / kWarp; ++warp) value = combine(value, of_warp[warp]);
  __syncthreads();  // nobody writes of_warp again before all have read it
  return value;
}

// One block per token.
__global__ void embedding_kernel(const float* table, const int* tokens, float* out, int dim) {
  const float* row = table + static_cast<size_t>(tokens[blockIdx.x]) * dim;
  float* to = out + static_cast<size_t>(blockIdx.x) * dim;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) to[i] = row[i];
}

// One block per token.
__global__ void rms_norm_kernel(const float* in, const float* weights, float* out, int dim) {
  const float* from = in + static_cast<size_t>(blockIdx.x) * dim;
  float* to = out + static_cast<size_t>(blockIdx.x) * dim;
  float squares = 0;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) squares += from[i] * from[i];
  const float mean = BlockReduce(squares, Sum()) / static_cast<float>(dim);
  const float scale = 1.0f / sqrtf(mean + 1e-5f);
  for (int i = threadIdx.x; i < dim; i += blockDim.x) to[i] = from[i] * scale * weights[i];
}

// One token, one warp per output.
__global__ void matvec_kernel(const float* matrix, const float* in, float* out, int rows,
                              int columns) {
  const int row = blockIdx.x * (kBlock / kWarp) + threadIdx.x / kWarp;
  if (row >= rows) return;  // the whole warp
  const float* weights = matrix + static_cast<size_t>(row) * columns;
  float sum = 0;
  for (int i = threadIdx.x % kWarp; i < columns; i += kWarp) sum += weights[i] * in[i];
  for (int lane = kWarp / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % kWarp == 0) out[row] = sum;
}

// Many tokens: a block makes kTile outputs of kTile tokens, from tiles in shared memory.
__global__ void matmul_kernel(const float* matrix, const float* in, float* out, int count, int rows,
                              int columns) {
  __shared__ float inputs[kTile][kTile];
  __shared__ float weights[kTile][kTile + 1];  // + 1: a column lies in as many banks as it has rows
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int token = blockIdx.y * kTile + y;
  const int first_row = blockIdx.x * kTile;
  float sum = 0;
  for (int first = 0; first < columns; first += kTile) {
    const bool inside = first + x < columns;
    inputs[y][x] =
        inside && token < count ? in[static_cast<size_t>(token) * columns + first + x] : 0;
    weights[y][x] = inside && first_row + y < rows
                        ? matrix[static_cast<size_t>(first_row + y) * columns + first + x]
                        : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += inputs[y][i] * weights[x][i];
    __syncthreads();
  }
  if (token < count && first_row + x < rows) {
    out[static_cast<size_t>(token) * rows + first_row + x] = sum;
  }
}

// Rotary positions: turns each pair of a head's values by an angle that grows with the token's
// position, fast for the first pairs, slowly for the last. One block per token.
__global__ void rope_kernel(float* data, const int* position, int dim, int head_dim) {
  float* row = data + static_cast<size_t>(blockIdx.x) * dim;
  const float at = static_cast<float>(*position + static_cast<int>(blockIdx.x));
  for (int i = 2 * threadIdx.x; i < dim; i += 2 * blockDim.x) {
    const float part = static_cast<float>(i % head_dim) / static_cast<float>(head_dim);
    const float angle = at * powf(10000.0f, -part);
    const float a = row[i];
    const float b = row[i + 1];
    row[i] = a * cosf(angle) - b * sinf(angle);
    row[i + 1] = a * sinf(angle) + b * cosf(angle);
  }
}

// Keys and values of these tokens, after those of the earlier ones. One block per token.
__global__ void append_cache_kernel(const float* key, const float* value, float* key_cache,
                                    float* value_cache, const int* position, int kv_dim) {
  const size_t from = static_cast<size_t>(blockIdx.x) * kv_dim;
  const size_t to = static_cast<size_t>(*position + static_cast<int>(blockIdx.x)) * kv_dim;
  for (int i = threadIdx.x; i < kv_dim; i += blockDim.x) {
    key_cache[to + i] = key[from + i];
    value_cache[to + i] = value[from + i];
  }
}

// One block per head (x) and token (y), over the keys up to the token's own. In one pass, kBlock
// keys at a time: what was summed so far is scaled down when a larger score comes.
__global__ void attention_kernel(const float* query, const float* key_cache,
                                 const float* value_cache, float* out, const int* position,
                                 int head_dim, int heads_per_kv_head) {
  __shared__ float own_query[kMaxHeadDim];
  __shared__ float weights[kBlock];
  const int thread = threadIdx.x;
  const int keys = *position + static_cast<int>(blockIdx.y) + 1;
  const size_t kv_dim = static_cast<size_t>(gridDim.x / heads_per_kv_head) * head_dim;
  const size_t kv_head = static_cast<size_t>(blockIdx.x / heads_per_kv_head) * head_dim;
  const size_t own = (static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x) * head_dim;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_dim));
  for (int i = thread; i < head_dim; i += kBlock) own_query[i] = query[own + i] * scale;
  __syncthreads();

  constexpr float kLowest = -1e30f;
  float highest = kLowest;
  float total = 0;
  float sums[kMaxHeadDim / kBlock] = {};
  for (int first = 0; first < keys; first += kBlock) {
    float score = kLowest;
    if (first + thread < keys) {
      const float* key = key_cache + (first + thread) * kv_dim + kv_head;
      score = 0;
      for (int i = 0; i < head_dim; ++i) score += own_query[i] * key[i];
    }
    const float before = highest;
    highest = fmaxf(before, BlockReduce(score, Max()));
    const float weight = first + thread < keys ? expf(score - highest) : 0;
    weights[thread] = weight;
    const float shrink = expf(before - highest);
    total = total * shrink + BlockReduce(weight, Sum());  // its barrier also shows all the weights
    const int these = keys - first < kBlock ? keys - first : kBlock;
    for (int i = 0; thread + i * kBlock < head_dim; ++i) {
      const float* values = value_cache + first * kv_dim + kv_head + thread + i * kBlock;
      float sum = sums[i] * shrink;
      for (int k = 0; k < these; ++k) sum += weights[k] * values[k * kv_dim];
      sums[i] = sum;
    }
    __syncthreads();  // the next weights overwrite these
  }
  for (int i = 0; thread + i * kBlock < head_dim; ++i) {
    out[own + thread + i * kBlock] = sums[i] / total;
  }
}

// The gate of SwiGLU: gate = silu(gate) * up.
__global__ void silu_multiply_kernel(float* gate, const float* up, int size) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < size) gate[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

__global__ void residual_add_kernel(float* data, const float* more, int size) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < size) data[i] += more[i];
}
