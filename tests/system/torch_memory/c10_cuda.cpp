#include "tests/system/torch_memory/c10_cuda.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <cuda_runtime.h>

#include "tests/system/torch_memory/c10.h"

namespace {

constexpr size_t kUnit = 512;
constexpr size_t kSegment = size_t{2} << 20;

struct Block {
  void* address;
  size_t bytes;
};

std::mutex lock;
std::multimap<size_t, void*> unused;  // by size; never split, never merged
std::map<void*, size_t> used;
TorchStats stats;

void Report(const Block& block, int64_t bytes) {
  const c10::Device device{1, 0};
#if defined(XPU_TORCH_1_8)
  c10::reportMemoryUsageToProfiler(block.address, bytes, device);
#elif defined(XPU_TORCH_UNKNOWN)
  c10::reportMemoryUsageToProfiler(block.address, bytes, 0.5, device);
#else
  c10::reportMemoryUsageToProfiler(block.address, bytes, stats.allocated, stats.reserved, device);
#endif
}

// Small blocks are the parts of a segment, a large one is a segment.
void Reserve(size_t bytes) {
  const size_t segment = std::max(bytes, kSegment);
  void* address = nullptr;
  if (cudaMalloc(&address, segment) != cudaSuccess) return;
  stats.reserved += segment;
  stats.peak_reserved = std::max(stats.peak_reserved, stats.reserved);
  for (size_t at = 0; at + bytes <= segment; at += bytes) {
    unused.emplace(bytes, static_cast<char*>(address) + at);
  }
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* torch_allocate(size_t bytes) {
  const std::lock_guard<std::mutex> hold(lock);
  bytes = (bytes + kUnit - 1) / kUnit * kUnit;
  auto found = unused.find(bytes);
  if (found == unused.end()) {
    Reserve(bytes);
    found = unused.find(bytes);
  }
  if (found == unused.end()) return nullptr;
  const Block block{found->second, bytes};
  unused.erase(found);
  used[block.address] = bytes;
  stats.allocated += bytes;
  stats.peak_allocated = std::max(stats.peak_allocated, stats.allocated);
  Report(block, static_cast<int64_t>(bytes));
  return block.address;
}

__attribute__((visibility("default"))) void torch_release(void* address) {
  const std::lock_guard<std::mutex> hold(lock);
  const auto found = used.find(address);
  const Block block{address, found->second};
  used.erase(found);
  unused.emplace(block.bytes, address);
  stats.allocated -= block.bytes;
  Report(block, -static_cast<int64_t>(block.bytes));
}

__attribute__((visibility("default"))) TorchStats torch_stats() {
  const std::lock_guard<std::mutex> hold(lock);
  return stats;
}
}
