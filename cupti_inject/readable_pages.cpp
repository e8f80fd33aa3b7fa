#include "cupti_inject/readable_pages.h"

#include "cupti_inject/stack_memory.h"

namespace xpu::inject {

bool ReadablePages::Ask(uint64_t address, uint64_t known, std::atomic<uint64_t>& slot) {
  const bool is_of_program = address >> 47 == 0;
  if (!is_of_program || !IsReadablePage(address)) return false;
  slot.store(known, std::memory_order_relaxed);
  return true;
}

}  // namespace xpu::inject
