// A caching allocator that reports as PyTorch's does; for torch_memory.cpp, which loads it.
#pragma once

#include <cstddef>

struct TorchStats {
  size_t allocated;
  size_t reserved;
  size_t peak_allocated;
  size_t peak_reserved;
};

extern "C" {
void* torch_allocate(size_t bytes);
void torch_release(void* address);
TorchStats torch_stats();
}
