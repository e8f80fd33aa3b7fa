// ./app and ./server of the examples in the man pages and the README: a thread "worker" that
// computes, launches kernels in NVTX ranges and between cudaProfilerStart and -Stop, whatever its
// arguments are. As "server" it goes on for three seconds.
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

extern "C" void gemm_kernel(float* /*values*/) {}

namespace {

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Compute(double cpu_seconds) {
  const double end = CpuSeconds() + cpu_seconds;
  while (CpuSeconds() < end) std::free(std::malloc(100));
}

}  // namespace

namespace ns {

struct Model {
  float* values = nullptr;

  __attribute__((noinline)) void step();
};

void Model::step() {
  nvtxRangePushA("step");
  void* arguments[] = {&values};
  cudaLaunchKernel(reinterpret_cast<const void*>(gemm_kernel), dim3(1), dim3(32), arguments, 0,
                   nullptr);
  cudaDeviceSynchronize();
  nvtxRangePop();
}

}  // namespace ns

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const bool is_server = argc > 0 && std::string_view(argv[0]).ends_with("server");
  const auto end = Clock::now() + std::chrono::seconds(is_server ? 3 : 0);
  std::thread worker([end] {
    pthread_setname_np(pthread_self(), "worker");
    ns::Model model;
    cudaMalloc(reinterpret_cast<void**>(&model.values), 4096);
    cudaProfilerStart();
    for (int i = 0; i < 50; ++i) model.step();
    // Its share of the CPU counts, so that it has samples on a busy machine too.
    Compute(0.2);
    while (Clock::now() < end) {
      model.step();
      Compute(0.001);  // so that it has samples whenever a recording begins
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    cudaProfilerStop();
    cudaFree(model.values);
  });
  worker.join();
  return 0;
}
