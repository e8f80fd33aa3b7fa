// A CUDA graph captured from a stream: a memset, N kernels alternating between two names, a copy
// within the device; then M replays.
//   --nodes N (kernels) --replays M --bytes B (of memset and copy; 0: the graph has neither)
//   --warmup W (replays before the M, not timed)
#include <algorithm>

#include "gpu.h"

__global__ void graph_even_kernel(float* data) {
#ifdef __CUDACC__
  data[threadIdx.x] += 1.0f;
#endif
}

__global__ void graph_odd_kernel(float* data) {
#ifdef __CUDACC__
  data[threadIdx.x] *= 0.5f;
#endif
}

struct Plan {
  uint64_t nodes;
  uint64_t replays;
  uint64_t warmup;
  size_t bytes;
  float* data = nullptr;
  float* copy = nullptr;
  cudaStream_t stream = nullptr;
};

// The launches that put the nodes into the graph: nothing runs here.
XPU_FRAME void CaptureEven(const Plan& plan) {
  XPU_LAUNCH_UNCOUNTED(graph_even_kernel, dim3(1), dim3(32), plan.stream, plan.data);
}

XPU_FRAME void CaptureOdd(const Plan& plan) {
  XPU_LAUNCH_UNCOUNTED(graph_odd_kernel, dim3(1), dim3(32), plan.stream, plan.data);
}

XPU_FRAME cudaGraphExec_t CaptureGraph(const Plan& plan) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  XPU_CUDA(cudaStreamBeginCapture(plan.stream, cudaStreamCaptureModeThreadLocal));
  if (plan.bytes > 0) XPU_CUDA(cudaMemsetAsync(plan.data, 0, plan.bytes, plan.stream));
  for (uint64_t i = 0; i < plan.nodes; ++i) {
    if (i % 2 == 0) {
      CaptureEven(plan);
    } else {
      CaptureOdd(plan);
    }
  }
  if (plan.bytes > 0) {
    XPU_CUDA(
        cudaMemcpyAsync(plan.copy, plan.data, plan.bytes, cudaMemcpyDeviceToDevice, plan.stream));
  }
  XPU_CUDA(cudaStreamEndCapture(plan.stream, &graph));
  XPU_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  XPU_CUDA(cudaGraphDestroy(graph));
  return executable;
}

XPU_FRAME void ReplayGraph(cudaGraphExec_t executable, const Plan& plan) {
  XPU_CUDA(cudaGraphLaunch(executable, plan.stream));
}

int main(int argc, char** argv) {
  Plan plan{};
  plan.nodes = workload::OptionNumber(argc, argv, "--nodes", 20);
  plan.replays = workload::OptionNumber(argc, argv, "--replays", 10);
  plan.warmup = workload::OptionNumber(argc, argv, "--warmup", 0);
  plan.bytes = workload::OptionNumber(argc, argv, "--bytes", 1 << 16);
  XPU_CUDA(cudaStreamCreateWithFlags(&plan.stream, cudaStreamNonBlocking));
  constexpr size_t kThreads = 32;  // of a block, a float each
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&plan.data),
                      std::max(plan.bytes, kThreads * sizeof(float))));
  if (plan.bytes > 0) XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&plan.copy), plan.bytes));
  cudaGraphExec_t executable = CaptureGraph(plan);

  workload::Tally tally;  // of what the GPU ran; "path" is where the nodes were captured
  for (uint64_t i = 0; i < plan.warmup; ++i) ReplayGraph(executable, plan);
  if (plan.warmup > 0) {
    XPU_CUDA(cudaStreamSynchronize(plan.stream));
    tally.CountSync();
  }
  const uint64_t begin = workload::ClockNs(CLOCK_MONOTONIC);
  for (uint64_t i = 0; i < plan.replays; ++i) ReplayGraph(executable, plan);
  XPU_CUDA(cudaStreamSynchronize(plan.stream));
  const uint64_t timed_ns = workload::ClockNs(CLOCK_MONOTONIC) - begin;
  tally.CountSync();
  for (uint64_t i = 0; i < plan.warmup + plan.replays; ++i) {
    tally.CountLaunch("main;CaptureGraph;CaptureEven", "graph_even_kernel", (plan.nodes + 1) / 2);
    tally.CountLaunch("main;CaptureGraph;CaptureOdd", "graph_odd_kernel", plan.nodes / 2);
    if (plan.bytes == 0) continue;
    tally.CountMemset(plan.bytes);
    tally.CountCopy("DtoD", plan.bytes);
  }

  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaFree(plan.data));
  XPU_CUDA(cudaFree(plan.copy));
  XPU_CUDA(cudaStreamDestroy(plan.stream));
  workload::JsonLine json;
  json.Add("workload", "graph");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("graph_kernel_nodes", plan.nodes);
  json.Add("graph_launches", plan.warmup + plan.replays);
  json.Add("graph_launch_path", "main;ReplayGraph");
  workload::AddTiming("replay", plan.replays, timed_ns, &json);
  tally.Write(&json);
  workload::PrintLine(json.Finish());
  return 0;
}
