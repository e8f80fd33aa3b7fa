// The slot by which PyTorch's allocator reaches us (torch_allocator.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace xpu::inject {

// In the process: the program may be inside our function when a session has ended.
struct TorchSlot {
  std::atomic<void*> original{nullptr};  // what our function goes on to
  // Of the thread that follows the loader.
  void** place = nullptr;
  uint64_t adds = 0, subs = 0;  // of the loader, at the last look
  uint32_t session = 0;         // that looked last
  bool is_told = false;         // that session knows what was found
};

}  // namespace xpu::inject
