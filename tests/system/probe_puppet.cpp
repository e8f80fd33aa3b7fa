// What record_probe_test.py records: programs that workloads are not.
//   late FILE COUNT   loads FILE, a libcudart, in the middle of its run; makes COUNT rounds of
//   calls outside           launches until it is killed, through the libcudart that all share
//   subscribe         asks the libcupti of the simulated device for its one subscription
//   throws            exceptions pass through PuppetThrows until it is killed
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#define XPU_FRAME __attribute__((noinline, noclone, noipa))

namespace {

using Launch = int (*)(const void* function, const void* second, dim3 block, void** arguments,
                       size_t shared, cudaStream_t stream);

void* Load(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return library;
}

}  // namespace

extern "C" XPU_FRAME void puppet_kernel() {}

// One frame for each function, so that the caller of a function tells which it was.
extern "C" {
XPU_FRAME int CallLaunchKernel(Launch launch) {
  return launch(reinterpret_cast<const void*>(0x11), nullptr, dim3(1), nullptr, 0, nullptr) + 1;
}
XPU_FRAME int CallLaunchKernelExC(Launch launch) {
  return launch(nullptr, reinterpret_cast<const void*>(0x22), dim3(1), nullptr, 0, nullptr) + 1;
}
XPU_FRAME int CallGraphLaunch(Launch launch) {
  return launch(reinterpret_cast<const void*>(0x33), nullptr, dim3(1), nullptr, 0, nullptr) + 1;
}
}

extern "C" XPU_FRAME void PuppetThrows() { throw 1; }

namespace {

int Late(const char* file, int count) {
  usleep(200'000);
  void* library = Load(file);
  if (library == nullptr) return 1;
  usleep(500'000);  // what the driver needs to start, on real machines
  const auto function = [&](const char* name) {
    return reinterpret_cast<Launch>(dlsym(library, name));
  };
  const Launch kernel = function("cudaLaunchKernel");
  const Launch extended = function("cudaLaunchKernelExC");
  const Launch graph = function("cudaGraphLaunch");
  for (int i = 0; i < count; ++i) {
    CallLaunchKernel(kernel);
    CallLaunchKernelExC(extended);
    CallGraphLaunch(graph);
  }
  return 0;
}

int Outside() {
  std::puts("launching");
  std::fflush(stdout);
  while (true) {
    void* no_arguments[] = {nullptr};
    cudaLaunchKernel(reinterpret_cast<const void*>(puppet_kernel), dim3(1), dim3(1), no_arguments,
                     0, nullptr);
    usleep(500);
  }
}

int Throws() {
  std::puts("throwing");
  std::fflush(stdout);
  while (true) {
    try {
      PuppetThrows();
    } catch (int) {
      usleep(500);
    }
  }
}

int Subscribe() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 16) != cudaSuccess) return 1;
  void* library = Load("libcupti.so.13");
  if (library == nullptr) return 1;
  using SubscribeFunction = int (*)(void** subscriber, void (*callback)(), void* data);
  const auto subscribe = reinterpret_cast<SubscribeFunction>(dlsym(library, "cuptiSubscribe"));
  void* subscriber = nullptr;
  std::printf("%d\n", subscribe(
                          &subscriber, [] {}, nullptr));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (std::strcmp(mode, "late") == 0 && argc > 3) return Late(argv[2], std::atoi(argv[3]));
  if (std::strcmp(mode, "outside") == 0) return Outside();
  if (std::strcmp(mode, "throws") == 0) return Throws();
  if (std::strcmp(mode, "subscribe") == 0) return Subscribe();
  return 2;
}
