// Work that ends, then a kernel that does not: a fault of the GPU or an endless loop, with more
// work launched after it. What a profiler has to name is `culprit`, launched by LaunchCulprit.
//   --fault none|illegal|misaligned|trap|hang  --streams N  --graph 0|1 (the culprit is a node)
//   --good N (kernels before it on each stream)  --after N (after it on each stream)
//   --period-us N (between two rounds of launches)  --sync-every N (rounds, before the culprit)
//   --kill-after-ms N (the program ends itself by SIGKILL so long after the last launch)
#include <csignal>
#include <cstring>
#include <vector>

#include "gpu.h"

enum class Fault : int { kNone, kIllegal, kMisaligned, kTrap, kHang };

__global__ void ordinary(float* values) {
#ifdef __CUDACC__
  values[threadIdx.x] += 1;
#else
  (void)values;
#endif
}

__global__ void culprit(float* values, Fault fault) {
#ifdef __CUDACC__
  auto* const bytes = reinterpret_cast<volatile char*>(values);
  if (fault == Fault::kIllegal) *reinterpret_cast<volatile float*>(bytes + (1LL << 44)) = 1;
  if (fault == Fault::kMisaligned) *reinterpret_cast<volatile float*>(bytes + 1) = 1;
  if (fault == Fault::kTrap) __trap();
  while (fault == Fault::kHang && *bytes != 77) {
  }
#else
  (void)values;
  (void)fault;
#endif
}

XPU_FRAME void LaunchOrdinary(cudaStream_t stream, float* values) {
  XPU_LAUNCH_UNCOUNTED(ordinary, dim3(1), dim3(32), stream, values);
}

XPU_FRAME void LaunchCulprit(cudaStream_t stream, float* values, Fault fault) {
  XPU_LAUNCH_UNCOUNTED(culprit, dim3(2), dim3(64), stream, values, fault);
}

XPU_FRAME void ReplayGraph(cudaGraphExec_t graph, cudaStream_t stream) {
  XPU_CUDA(cudaGraphLaunch(graph, stream));
}

XPU_FRAME void WaitForGpu() { XPU_CUDA(cudaDeviceSynchronize()); }

XPU_FRAME cudaGraphExec_t MakeGraph(cudaStream_t stream, float* values, Fault fault) {
  cudaGraph_t graph;
  cudaGraphExec_t made;
  XPU_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 3; ++i) LaunchOrdinary(stream, values);
  LaunchCulprit(stream, values, fault);
  for (int i = 0; i < 3; ++i) LaunchOrdinary(stream, values);
  XPU_CUDA(cudaStreamEndCapture(stream, &graph));
  XPU_CUDA(cudaGraphInstantiate(&made, graph, 0));
  return made;
}

Fault FaultNamed(const char* name) {
  constexpr const char* kNames[] = {"none", "illegal", "misaligned", "trap", "hang"};
  for (int i = 0; i < 5; ++i) {
    if (std::strcmp(name, kNames[i]) == 0) return static_cast<Fault>(i);
  }
  std::fprintf(stderr, "gpu_faults: no fault is called %s\n", name);
  std::exit(2);
}

int main(int argc, char** argv) {
  const Fault fault = FaultNamed(workload::OptionString(argc, argv, "--fault", "illegal").c_str());
  const uint64_t good = workload::OptionNumber(argc, argv, "--good", 300);
  const uint64_t after = workload::OptionNumber(argc, argv, "--after", 50);
  const uint64_t period_us = workload::OptionNumber(argc, argv, "--period-us", 0);
  const uint64_t sync_every = workload::OptionNumber(argc, argv, "--sync-every", 0);
  const uint64_t kill_after_ms = workload::OptionNumber(argc, argv, "--kill-after-ms", 0);
  std::vector<cudaStream_t> streams(workload::OptionNumber(argc, argv, "--streams", 1));
  for (cudaStream_t& stream : streams) {
    XPU_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void* memory = nullptr;
  XPU_CUDA(cudaMalloc(&memory, 4096));
  XPU_CUDA(cudaMemset(memory, 0, 4096));
  auto* const values = static_cast<float*>(memory);
  // Both are loaded before the first fault, since loading may wait for running kernels.
  LaunchCulprit(streams[0], values, Fault::kNone);
  cudaGraphExec_t graph = nullptr;
  if (workload::OptionNumber(argc, argv, "--graph", 0) != 0) {
    graph = MakeGraph(streams[0], values, fault);
  }
  const auto launch_round = [&] {
    for (cudaStream_t stream : streams) LaunchOrdinary(stream, values);
    if (period_us != 0) usleep(static_cast<useconds_t>(period_us));
  };
  for (uint64_t i = 0; i < good; ++i) {
    launch_round();
    if (sync_every != 0 && i % sync_every == sync_every - 1) WaitForGpu();
  }
  if (graph != nullptr) {
    ReplayGraph(graph, streams[0]);
  } else {
    LaunchCulprit(streams[0], values, fault);
  }
  for (uint64_t i = 0; i < after; ++i) launch_round();
  if (kill_after_ms != 0) {
    usleep(static_cast<useconds_t>(kill_after_ms * 1000));
    kill(getpid(), SIGKILL);
  }
  WaitForGpu();
  return 0;
}
