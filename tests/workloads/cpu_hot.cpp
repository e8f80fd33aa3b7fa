// Three functions with known shares of CPU time, for the CPU sampler: HotHalf 50 %, HotThird 30 %,
// HotFifth 20 % by work units of equal cost, and what each really used by the thread's CPU clock.
//   --seconds S --threads T
#include <cstdint>
#include <thread>
#include <vector>

#include "json_line.h"
#include "puppet.h"

namespace {

constexpr int kFunctions = 3;
constexpr const char* kNames[kFunctions] = {"HotHalf", "HotThird", "HotFifth"};
constexpr uint64_t kUnits[kFunctions] = {5, 3, 2};

struct Worker {
  uint64_t cpu_ns_wanted = 0;
  uint64_t iterations_per_unit = 0;
  uint64_t cpu_ns[kFunctions] = {};
  uint64_t total_cpu_ns = 0;
  uint64_t tid = 0;
  uint64_t result = 0;
};

}  // namespace

// One loop each, not a shared helper: a sample's innermost frame tells the functions apart. The
// chain of dependent operations costs the same on every pass, whatever the data.
#define XPU_HOT_FUNCTION(name, constant)         \
  XPU_FRAME uint64_t name(uint64_t iterations) { \
    uint64_t x = constant;                       \
    for (uint64_t i = 0; i < iterations; ++i) {  \
      x ^= x << 13;                              \
      x ^= x >> 7;                               \
      x ^= x << 17;                              \
    }                                            \
    return x;                                    \
  }

XPU_HOT_FUNCTION(HotHalf, 0x9e3779b97f4a7c15)
XPU_HOT_FUNCTION(HotThird, 0xbf58476d1ce4e5b9)
XPU_HOT_FUNCTION(HotFifth, 0x94d049bb133111eb)

XPU_FRAME void RunRound(Worker* worker) {
  uint64_t (*const functions[kFunctions])(uint64_t) = {HotHalf, HotThird, HotFifth};
  uint64_t before = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kFunctions; ++i) {
    worker->result += functions[i](kUnits[i] * worker->iterations_per_unit);
    const uint64_t after = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
    worker->cpu_ns[i] += after - before;
    before = after;
  }
}

XPU_FRAME void RunHotLoop(Worker* worker) {
  worker->tid = workload::ThreadId();
  const uint64_t begin = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  while (worker->total_cpu_ns < worker->cpu_ns_wanted) {
    RunRound(worker);
    worker->total_cpu_ns = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin;
  }
}

// So many iterations that a unit takes about 0.1 ms: a round, 1 ms, is short against a sampling
// period of 10 ms, so the shares hold for short runs too, and long against reading the clock.
uint64_t Calibrate() {
  constexpr uint64_t kIterations = 1'000'000;
  const uint64_t begin = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  volatile uint64_t result = HotHalf(kIterations);
  static_cast<void>(result);
  const uint64_t elapsed = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin;
  return kIterations * 100'000 / (elapsed + 1) + 1;
}

int main(int argc, char** argv) {
  const char* seconds = workload::Option(argc, argv, "--seconds");
  const double wanted = seconds == nullptr ? 1.0 : std::strtod(seconds, nullptr);
  std::vector<Worker> workers(workload::OptionNumber(argc, argv, "--threads", 1));
  const uint64_t iterations_per_unit = Calibrate();
  for (Worker& worker : workers) {
    worker.cpu_ns_wanted = static_cast<uint64_t>(wanted * 1e9);
    worker.iterations_per_unit = iterations_per_unit;
  }
  if (workers.size() == 1) {
    RunHotLoop(&workers[0]);
  } else {
    std::vector<std::thread> threads;
    for (Worker& worker : workers) threads.emplace_back(RunHotLoop, &worker);
    for (std::thread& thread : threads) thread.join();
  }

  workload::JsonLine json;
  json.Add("workload", "cpu_hot");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("path", "RunHotLoop;RunRound");
  json.BeginObject("cpu_ns");
  for (int i = 0; i < kFunctions; ++i) {
    uint64_t sum = 0;
    for (const Worker& worker : workers) sum += worker.cpu_ns[i];
    json.Add(kNames[i], sum);
  }
  json.EndObject();
  json.BeginArray("threads");
  for (const Worker& worker : workers) {
    json.BeginObject("");
    json.Add("tid", worker.tid);
    json.Add("cpu_ns", worker.total_cpu_ns);
    json.EndObject();
  }
  json.EndArray();
  workload::PrintLine(json.Finish());
  return 0;
}
