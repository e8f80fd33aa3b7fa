#include "tests/system/torch_memory/c10.h"

#include <atomic>

namespace {

std::atomic<uint64_t> reports{0};

// Who wants to know, as PyTorch's profiler does while it runs: nobody.
struct Reporter {
  virtual void Report(void* block, int64_t size, size_t allocated, size_t reserved,
                      c10::Device device) = 0;
  virtual ~Reporter() = default;
};

Reporter* FindReporter() {
  ++reports;
  Reporter* reporter = nullptr;
  asm volatile("" : "+r"(reporter));
  return reporter;
}

void Report(void* block, int64_t size, size_t allocated, size_t reserved, c10::Device device) {
  // Registers are saved first, as in PyTorch: what probes cost depends on the first instruction.
  asm volatile("" : : : "rbx", "r14");
  if (Reporter* reporter = FindReporter()) {
    reporter->Report(block, size, allocated, reserved, device);
  }
}

}  // namespace

namespace c10 {

#if defined(XPU_TORCH_1_8)
void reportMemoryUsageToProfiler(void* block, int64_t size, Device device) {
  Report(block, size, 0, 0, device);
}
#elif defined(XPU_TORCH_UNKNOWN)
void reportMemoryUsageToProfiler(void* block, int64_t size, double, Device device) {
  Report(block, size, 0, 0, device);
}
#else
void reportMemoryUsageToProfiler(void* block, int64_t size, size_t allocated, size_t reserved,
                                 Device device) {
  Report(block, size, allocated, reserved, device);
}
#endif

}  // namespace c10

extern "C" uint64_t c10_reports() { return reports; }
