// Launches at a rate that it keeps, as the steps of a model: from many call sites, of kernels with
// different names, sizes and durations, for benches of what recording costs.
//   --rate N (launches a second, of all threads) --seconds S --threads T --burn
//
// A step is kSites launches back to back; then the thread sleeps until the next one is due, or with
// --burn computes until then. JSON says how many launches there were and by how many ns the last
// step was late: a program that cannot keep the rate shows there.
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "gpu.h"

namespace {

constexpr int kSites = 60;
constexpr int kRootFrames = 12;

struct Worker {
  uint64_t steps = 0;
  uint64_t step_ns = 0;
  bool burns = false;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
  std::mt19937_64 random{1};
  uint64_t launched = 0;
  uint64_t late_ns = 0;
};

}  // namespace

template <int kKernel>
__global__ void step_kernel(float* data, int count, unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

// A site's kernel takes about as long each time.
inline unsigned long long SpinNs(Worker* worker, int site) {
  const auto typical = 100.0 + 50.0 * (site % 17);
  return static_cast<unsigned long long>(
      std::max(0.0, std::normal_distribution<double>(typical, typical * 0.1)(worker->random)));
}

// One function for each site, under as many frames of its own as its number says.
// NOLINTNEXTLINE(misc-no-recursion): deep stacks are what it is for.
template <int kSite>
XPU_FRAME void LaunchSite(Worker* worker, int frames) {
  if (frames > 0) return LaunchSite<kSite>(worker, frames - 1);
  XPU_LAUNCH_UNCOUNTED(step_kernel<kSite % 20>, dim3(1u << (kSite % 10)),
                       dim3(kSite % 3 == 0 ? 256 : 128), worker->stream, worker->data, kSite,
                       SpinNs(worker, kSite));
}

template <int... kSite>
XPU_FRAME void RunStep(Worker* worker, std::integer_sequence<int, kSite...> /*sites*/) {
  (LaunchSite<kSite>(worker, kSite % 24), ...);
  worker->launched += sizeof...(kSite);
}

inline void WaitUntil(uint64_t due_ns, bool burns) {
  if (!burns) {
    const timespec due{static_cast<time_t>(due_ns / 1'000'000'000),
                       static_cast<long>(due_ns % 1'000'000'000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
    return;
  }
  while (workload::ClockNs(CLOCK_MONOTONIC) < due_ns) {
  }
}

XPU_FRAME void RunSteps(Worker* worker) {
  // The GPU's queue holds about a thousand launches.
  constexpr uint64_t kStepsPerSync = 10;
  uint64_t due_ns = workload::ClockNs(CLOCK_MONOTONIC);
  for (uint64_t step = 0; step < worker->steps; ++step) {
    RunStep(worker, std::make_integer_sequence<int, kSites>());
    if (step % kStepsPerSync == 0) XPU_CUDA(cudaStreamSynchronize(worker->stream));
    due_ns += worker->step_ns;
    WaitUntil(due_ns, worker->burns);
  }
  const uint64_t now_ns = workload::ClockNs(CLOCK_MONOTONIC);
  worker->late_ns = now_ns - std::min(now_ns, due_ns);
}

// NOLINTNEXTLINE(misc-no-recursion): as above.
XPU_FRAME void Descend(Worker* worker, int frames) {
  if (frames > 0) return Descend(worker, frames - 1);
  RunSteps(worker);
}

int main(int argc, char** argv) {
  std::vector<Worker> workers(workload::OptionNumber(argc, argv, "--threads", 1));
  const uint64_t rate = workload::OptionNumber(argc, argv, "--rate", 100'000);
  const uint64_t seconds = workload::OptionNumber(argc, argv, "--seconds", 5);
  for (Worker& worker : workers) {
    worker.step_ns = uint64_t{1'000'000'000} * kSites * workers.size() / rate;
    worker.steps = seconds * 1'000'000'000 / worker.step_ns;
    worker.burns = workload::Flag(argc, argv, "--burn");
    XPU_CUDA(cudaStreamCreateWithFlags(&worker.stream, cudaStreamNonBlocking));
    XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&worker.data), 4096));
  }
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back(Descend, &worker, kRootFrames);
  for (std::thread& thread : threads) thread.join();

  uint64_t launches = 0;
  uint64_t late_ns = 0;
  for (const Worker& worker : workers) {
    launches += worker.launched;
    late_ns = std::max(late_ns, worker.late_ns);
    XPU_CUDA(cudaStreamSynchronize(worker.stream));
  }
  workload::JsonLine json;
  json.Add("workload", "paced_launches");
  json.Add("launches", launches);
  json.Add("late_ns", late_ns);
  // Of the whole program until here.
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto nanoseconds = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  json.Add("cpu_ns", nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime));
  json.Add("end_ns", workload::ClockNs(CLOCK_MONOTONIC));
  workload::PrintLine(json.Finish());
  return 0;
}
