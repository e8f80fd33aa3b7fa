// Counts of its own for CPU events and probes: pages that each function touches first, times that
// each thread goes to sleep, calls of each function from each caller; in threads and in a child.
//   --pages N --sleeps N --calls N --threads T --child --processes N
// The processes all run on one CPU, so that the kernel's records of them go into one ring.
// Without --child the last line of the output is the account of this process.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json_line.h"
#include "puppet.h"

namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

XPU_FRAME void TouchPages(volatile char* pages, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) pages[i * kPageBytes] = 1;
}

// Each page for the first time, and each by a fault of its own.
XPU_FRAME void FaultPages(uint64_t count) {
  if (count == 0) return;
  const size_t bytes = count * kPageBytes;
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) std::abort();
  ::madvise(pages, bytes, MADV_NOHUGEPAGE);
  TouchPages(static_cast<char*>(pages), count);
  ::munmap(pages, bytes);
}

XPU_FRAME void SleepOften(uint64_t count) {
  const timespec while_ns{0, 1'000'000};
  for (uint64_t i = 0; i < count; ++i) ::nanosleep(&while_ns, nullptr);
}

extern "C" {

XPU_FRAME int CountedCall(int value) { return value + 1; }

// Calls itself `depth` times.
XPU_FRAME int CountedDepth(int depth) {
  if (depth == 0) return 0;
  const int below = CountedDepth(depth - 1);
  return CountedCall(below);
}
}

namespace counted {

XPU_FRAME int Often(int times) {
  int sum = 0;
  for (int i = 0; i < times; ++i) sum = CountedCall(sum);
  return sum;
}

XPU_FRAME int Twice(int value) { return CountedCall(CountedCall(value)); }

}  // namespace counted

namespace {

constexpr int kDepth = 5;

XPU_FRAME void RunAll(uint64_t pages, uint64_t sleeps, uint64_t calls) {
  FaultPages(pages);
  SleepOften(sleeps);
  int sum = counted::Often(static_cast<int>(calls));
  sum += counted::Twice(sum);
  sum += CountedDepth(kDepth);
  // Keeps the result.
  asm volatile("" : : "r"(sum));
}

// Ends at once. vfork copies no page tables, so many of them take little time anywhere.
XPU_FRAME void StartProcess() {
  const pid_t child = ::vfork();
  if (child < 0) std::abort();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
}

void StayOnThisCpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<size_t>(::sched_getcpu()), &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t pages = workload::OptionNumber(argc, argv, "--pages", 0);
  const uint64_t sleeps = workload::OptionNumber(argc, argv, "--sleeps", 0);
  const uint64_t calls = workload::OptionNumber(argc, argv, "--calls", 0);
  const uint64_t threads = workload::OptionNumber(argc, argv, "--threads", 1);
  const uint64_t processes = workload::OptionNumber(argc, argv, "--processes", 0);
  const bool has_child = workload::Flag(argc, argv, "--child");
  if (has_child) {
    const pid_t child = ::fork();
    if (child == 0) {
      RunAll(pages, sleeps, calls);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  }
  if (processes > 0) StayOnThisCpu();
  for (uint64_t i = 0; i < processes; ++i) StartProcess();
  std::vector<std::thread> workers;
  for (uint64_t i = 0; i < threads; ++i) workers.emplace_back(RunAll, pages, sleeps, calls);
  for (std::thread& worker : workers) worker.join();
  const uint64_t runs = threads + (has_child ? 1 : 0);
  workload::JsonLine line;
  line.Add("runs", runs);
  line.Add("pages", runs * pages);
  line.Add("sleeps", runs * sleeps);
  line.Add("often", runs * calls);
  line.Add("twice", runs * 2);
  line.Add("depth", runs * (kDepth + 1));
  line.Add("in_depth", runs * kDepth);
  line.Add("processes", processes);
  line.Add("calls", runs * (calls + 2 + kDepth));
  workload::PrintLine(line.Finish());
  return 0;
}
