// Memory of our own in the program's process, past its allocator.
#pragma once

#include <cstddef>

#include <sys/mman.h>

namespace xpu::inject {

// Zeros, which take no room until they are touched; nullptr: there is no address space left. Given
// back by munmap.
inline void* MapZeroed(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace xpu::inject
