// A graph of short kernels, replayed very often: more node records than CUPTI has room for.
//   --nodes N --replays M
#include "gpu.h"

__global__ void storm_kernel() {}

XPU_FRAME void CaptureNode(cudaStream_t stream) {
  XPU_LAUNCH_UNCOUNTED(storm_kernel, dim3(1), dim3(1), stream);
}

XPU_FRAME cudaGraphExec_t CaptureStorm(cudaStream_t stream, uint64_t nodes) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  XPU_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (uint64_t i = 0; i < nodes; ++i) CaptureNode(stream);
  XPU_CUDA(cudaStreamEndCapture(stream, &graph));
  XPU_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  XPU_CUDA(cudaGraphDestroy(graph));
  return executable;
}

XPU_FRAME void ReplayStorm(cudaGraphExec_t executable, cudaStream_t stream) {
  XPU_CUDA(cudaGraphLaunch(executable, stream));
}

int main(int argc, char** argv) {
  constexpr uint64_t kReplaysPerSync = 100;  // the GPU's queue stays short
  const uint64_t nodes = workload::OptionNumber(argc, argv, "--nodes", 100);
  const uint64_t replays = workload::OptionNumber(argc, argv, "--replays", 1000);
  cudaStream_t stream = nullptr;
  XPU_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraphExec_t executable = CaptureStorm(stream, nodes);
  workload::Tally tally;
  const uint64_t begin = workload::ClockNs(CLOCK_MONOTONIC);
  for (uint64_t i = 1; i <= replays; ++i) {
    ReplayStorm(executable, stream);
    if (i % kReplaysPerSync != 0 && i != replays) continue;
    XPU_CUDA(cudaStreamSynchronize(stream));
    tally.CountSync();
  }
  const uint64_t elapsed_ns = workload::ClockNs(CLOCK_MONOTONIC) - begin;
  tally.CountLaunch("main;CaptureStorm;CaptureNode", "storm_kernel", nodes * replays);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaStreamDestroy(stream));
  workload::JsonLine json;
  json.Add("workload", "graph_storm");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("graph_kernel_nodes", nodes);
  json.Add("graph_launches", replays);
  json.Add("graph_launch_path", "main;ReplayStorm");
  json.Add("elapsed_ns", elapsed_ns);
  json.Add("ns_per_replay", replays == 0 ? 0 : elapsed_ns / replays);
  tally.Write(&json);
  workload::PrintLine(json.Finish());
  return 0;
}
