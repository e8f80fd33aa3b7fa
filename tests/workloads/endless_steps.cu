// Steps without end, to attach to. Each thread launches the same number of kernels in every step
// and notes when it began, so that the steps inside a recording's window can be counted.
//   --threads T --launches K (kernels of a step) --spin-us N (of each kernel)
//   --first-ms N (a kernel before the first step)
//   --sync-every S (steps; 0: never) --sleep-us M (after each step)
//   --graph (a step also replays a graph of K kernels that was made at the start)
//   --replay-after-ms M (of --graph: not before that time has passed)
//   --wait (before its first CUDA call, for a line of its standard input)
//   --times FILE
// Prints a line when all threads run, and ends with its standard input. Then FILE has a line for
// each thread: its id, the kernels of a step, the time at which each step began, and the end of the
// last one, all of CLOCK_MONOTONIC.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "gpu.h"

namespace {

struct Worker {
  int launches = 0;
  unsigned long long spin_ns = 0;
  unsigned long long first_ns = 0;
  uint64_t sync_every = 0;
  uint64_t sleep_us = 0;
  uint64_t replay_from_ns = 0;  // CLOCK_MONOTONIC
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;  // nullptr: none
  uint64_t tid = 0;
  std::vector<uint64_t> times;
};

std::atomic<bool> ends{false};
std::atomic<uint64_t> running{0};

}  // namespace

__global__ void endless_kernel(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

XPU_FRAME void LaunchStep(Worker* worker) {
  for (int i = 0; i < worker->launches; ++i) {
    XPU_LAUNCH_UNCOUNTED(endless_kernel, dim3(1), dim3(32), worker->stream, worker->spin_ns);
  }
}

XPU_FRAME void LaunchFirst(Worker* worker) {
  XPU_LAUNCH_UNCOUNTED(endless_kernel, dim3(1), dim3(32), worker->stream, worker->first_ns);
}

XPU_FRAME void ReplayStep(Worker* worker) {
  if (worker->graph == nullptr || worker->times.back() < worker->replay_from_ns) return;
  XPU_CUDA(cudaGraphLaunch(worker->graph, worker->stream));
}

XPU_FRAME void RunSteps(Worker* worker) {
  worker->tid = workload::ThreadId();
  if (worker->first_ns != 0) LaunchFirst(worker);
  ++running;
  for (uint64_t step = 0; !ends.load(std::memory_order_relaxed); ++step) {
    worker->times.push_back(workload::ClockNs(CLOCK_MONOTONIC));
    LaunchStep(worker);
    ReplayStep(worker);
    if (worker->sync_every != 0 && step % worker->sync_every == 0) {
      XPU_CUDA(cudaStreamSynchronize(worker->stream));
    }
    if (worker->sleep_us != 0) usleep(static_cast<useconds_t>(worker->sleep_us));
  }
  worker->times.push_back(workload::ClockNs(CLOCK_MONOTONIC));
  XPU_CUDA(cudaStreamSynchronize(worker->stream));
}

// Of the step's kernels.
XPU_FRAME void MakeGraph(Worker* worker) {
  cudaGraph_t graph = nullptr;
  XPU_CUDA(cudaStreamBeginCapture(worker->stream, cudaStreamCaptureModeThreadLocal));
  LaunchStep(worker);
  XPU_CUDA(cudaStreamEndCapture(worker->stream, &graph));
  XPU_CUDA(cudaGraphInstantiate(&worker->graph, graph, 0));
}

int main(int argc, char** argv) {
  if (workload::Flag(argc, argv, "--wait")) {
    std::puts("waiting");
    std::fflush(stdout);
    for (int c = 0; c != '\n' && c != EOF;) c = std::getchar();
  }
  std::vector<Worker> workers(workload::OptionNumber(argc, argv, "--threads", 1));
  constexpr size_t kManySteps = size_t{1} << 21;
  for (Worker& worker : workers) {
    // Touched now: the program's memory does not grow while tests look at it.
    worker.times.resize(kManySteps);
    worker.times.clear();
    worker.launches = static_cast<int>(workload::OptionNumber(argc, argv, "--launches", 30));
    worker.spin_ns = workload::OptionNumber(argc, argv, "--spin-us", 5) * 1000;
    worker.first_ns = workload::OptionNumber(argc, argv, "--first-ms", 0) * 1'000'000;
    worker.sync_every = workload::OptionNumber(argc, argv, "--sync-every", 10);
    worker.sleep_us = workload::OptionNumber(argc, argv, "--sleep-us", 0);
    worker.replay_from_ns = workload::ClockNs(CLOCK_MONOTONIC) +
                            workload::OptionNumber(argc, argv, "--replay-after-ms", 0) * 1'000'000;
    XPU_CUDA(cudaStreamCreateWithFlags(&worker.stream, cudaStreamNonBlocking));
    if (workload::Flag(argc, argv, "--graph")) MakeGraph(&worker);
  }
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back(RunSteps, &worker);
  while (running < workers.size()) usleep(1000);
  std::puts("running");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();

  const std::string path = workload::OptionString(argc, argv, "--times", "/dev/null");
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return 1;
  for (const Worker& worker : workers) {
    std::fprintf(file, "%llu %d", static_cast<unsigned long long>(worker.tid), worker.launches);
    for (const uint64_t time_ns : worker.times) {
      std::fprintf(file, " %llu", static_cast<unsigned long long>(time_ns));
    }
    std::fputc('\n', file);
  }
  return std::fclose(file) == 0 ? 0 : 1;
}
