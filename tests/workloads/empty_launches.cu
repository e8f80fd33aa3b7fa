// Empty kernels back to back: what one launch costs, and many threads launching at once.
//   --launches N (per thread) --threads T --depth D (D + 1 frames of Descend)
//   --warmup W (per thread, not timed)
#include <thread>
#include <vector>

#include "gpu.h"

__global__ void empty_kernel() {}

struct Worker {
  uint64_t launches = 0;
  uint64_t warmup = 0;
  uint64_t depth = 0;
  uint64_t launched = 0;
  uint64_t elapsed_ns = 0;
  uint64_t tid = 0;
  cudaStream_t stream = nullptr;
};

XPU_FRAME void LaunchMany(Worker* worker, uint64_t launches) {
  // The GPU's queue holds about a thousand launches; a launch into a full one waits for the GPU.
  constexpr uint64_t kLaunchesPerSync = 500;
  for (uint64_t i = 0; i < launches; ++i) {
    XPU_LAUNCH_UNCOUNTED(empty_kernel, dim3(1), dim3(1), worker->stream);
    if ((i + 1) % kLaunchesPerSync == 0) XPU_CUDA(cudaStreamSynchronize(worker->stream));
  }
  worker->launched += launches;
}

// NOLINTNEXTLINE(misc-no-recursion): deep stacks are what it is for.
XPU_FRAME void Descend(Worker* worker, uint64_t depth, uint64_t launches) {
  if (depth == 0) {
    LaunchMany(worker, launches);
  } else {
    Descend(worker, depth - 1, launches);
  }
}

XPU_FRAME void RunWorker(Worker* worker) {
  worker->tid = workload::ThreadId();
  if (worker->warmup > 0) {
    Descend(worker, worker->depth, worker->warmup);
    XPU_CUDA(cudaStreamSynchronize(worker->stream));
  }
  const uint64_t begin = workload::ClockNs(CLOCK_MONOTONIC);
  Descend(worker, worker->depth, worker->launches);
  XPU_CUDA(cudaStreamSynchronize(worker->stream));
  worker->elapsed_ns = workload::ClockNs(CLOCK_MONOTONIC) - begin;
}

int main(int argc, char** argv) {
  std::vector<Worker> workers(workload::OptionNumber(argc, argv, "--threads", 1));
  for (Worker& worker : workers) {
    worker.launches = workload::OptionNumber(argc, argv, "--launches", 1000);
    worker.warmup = workload::OptionNumber(argc, argv, "--warmup", 0);
    worker.depth = workload::OptionNumber(argc, argv, "--depth", 0);
    XPU_CUDA(cudaStreamCreateWithFlags(&worker.stream, cudaStreamNonBlocking));
  }
  // The first launch loads the kernel, which takes milliseconds: it is counted but not timed.
  workload::Tally tally;
  XPU_LAUNCH(&tally, "main", empty_kernel, dim3(1), dim3(1), workers[0].stream);
  XPU_CUDA(cudaStreamSynchronize(workers[0].stream));

  if (workers.size() == 1) {
    RunWorker(&workers[0]);
  } else {
    std::vector<std::thread> threads;
    for (Worker& worker : workers) threads.emplace_back(RunWorker, &worker);
    for (std::thread& thread : threads) thread.join();
  }

  workload::JsonLine json;
  json.Add("workload", "empty_launches");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  std::string path = "RunWorker;";
  for (uint64_t i = 0; i <= workers[0].depth; ++i) path += "Descend;";
  path += "LaunchMany";
  uint64_t timed_launches = 0;
  uint64_t timed_ns = 0;
  json.BeginArray("workers");
  for (const Worker& worker : workers) {
    tally.CountLaunch(path.c_str(), "empty_kernel", worker.launched);
    json.BeginObject("");
    json.Add("tid", worker.tid);
    json.Add("launches", worker.launched);
    json.Add("elapsed_ns", worker.elapsed_ns);
    json.Add("ns_per_launch", worker.launches == 0 ? 0 : worker.elapsed_ns / worker.launches);
    json.EndObject();
    timed_launches += worker.launches;
    timed_ns += worker.elapsed_ns;
  }
  json.EndArray();
  workload::AddTiming("launch", timed_launches, timed_ns, &json);
  tally.Write(&json);
  for (Worker& worker : workers) XPU_CUDA(cudaStreamDestroy(worker.stream));
  workload::PrintLine(json.Finish());
  return 0;
}
