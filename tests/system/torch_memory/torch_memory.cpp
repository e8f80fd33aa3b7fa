// A program with a caching allocator as PyTorch has one: what record_torch_memory_test.py records.
//
//   torch_memory LIBRARY steady|leak|fragment [STEPS] [late]
//   torch_memory LIBRARY calls N        a line with the nanoseconds of a call, for each line of
//   input torch_memory LIBRARY endless        steps until the standard input ends
//
// LIBRARY is its libc10_cuda; `late`: loaded once CUDA has begun. The last line of the output is
// its own account as JSON.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include "tests/system/torch_memory/c10_cuda.h"

namespace {

decltype(&torch_allocate) allocate;
decltype(&torch_release) release;
decltype(&torch_stats) stats;
uint64_t (*reports)();

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
}

void Load(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  Find(library, "torch_allocate", allocate);
  Find(library, "torch_release", release);
  Find(library, "torch_stats", stats);
  Find(library, "c10_reports", reports);
}

}  // namespace

// Frames of their own, by their own names.
#if defined(__clang__)
#define XPU_FRAME __attribute__((noinline))
#else
#define XPU_FRAME __attribute__((noinline, noclone))
#endif

XPU_FRAME void* MakeWeights(size_t bytes) {
  void* weights = allocate(bytes);
  asm volatile("" : "+r"(weights));
  return weights;
}

XPU_FRAME void* Forward(size_t bytes) {
  void* output = allocate(bytes);
  asm volatile("" : "+r"(output));
  return output;
}

XPU_FRAME void* KeepLoss(size_t bytes) {
  void* loss = allocate(bytes);
  asm volatile("" : "+r"(loss));
  return loss;
}

namespace {

void* scratch;

void Launch() {
  cudaMemset(scratch, 0, 64);
  cudaDeviceSynchronize();
}

// Three blocks at once, the second of which outlives the first.
XPU_FRAME void Step(bool leaks) {
  void* first = Forward(1 << 20);
  void* second = Forward(3000);
  release(first);
  void* third = Forward(5000);
  Launch();
  release(second);
  release(third);
  if (leaks) KeepLoss(100'000);
}

XPU_FRAME void Fragment(int steps) {
  for (int step = 1; step <= steps; ++step) {
    // Always a little more: no earlier piece is large enough.
    void* block = Forward((size_t{16} << 20) + (static_cast<size_t>(step) << 20));
    Launch();
    release(block);
  }
}

void Endless() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  std::puts("running");
  std::fflush(stdout);
  char byte = 0;
  while (poll(&input, 1, 0) == 0 || read(STDIN_FILENO, &byte, 1) > 0) Step(false);
}

// Nanoseconds of a block that is handed out or taken back.
XPU_FRAME double TimeCalls(long calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < calls; i += 2) release(allocate(4096));
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(calls);
}

void TimeTurns(long calls) {
  char line[16];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    std::printf("%.1f\n", TimeCalls(calls));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[2];
  const int steps = argc > 3 ? std::atoi(argv[3]) : 50;
  const bool late = argc > 4 && std::strcmp(argv[4], "late") == 0;
  if (!late) Load(argv[1]);
  if (cudaMalloc(&scratch, 4096) != cudaSuccess) return 3;
  Launch();
  if (late) {
    Load(argv[1]);
    // The library follows the loader when there is work of the GPU.
    for (int i = 0; i < 10; ++i) {
      Launch();
      usleep(50'000);
    }
  }
  void* weights = MakeWeights(4'000'000);
  if (mode == "calls") TimeTurns(steps);
  if (mode == "endless") Endless();
  if (mode == "fragment") Fragment(steps);
  if (mode == "steady" || mode == "leak") {
    for (int step = 0; step < steps; ++step) Step(mode == "leak");
  }
  const TorchStats had = stats();
  release(weights);
  std::printf(
      "{\"peak\": %zu, \"reserved\": %zu, \"left\": %zu, \"reports\": %llu, \"weights\": "
      "4000256}\n",
      had.peak_allocated, had.peak_reserved, stats().allocated,
      static_cast<unsigned long long>(reports()));
  return 0;
}
