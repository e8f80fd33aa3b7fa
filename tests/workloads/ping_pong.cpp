// Two threads that pass a byte to and fro through pipes: `ping_pong --rounds=N [--bound]`. Prints
// as JSON how many times threads stopped running meanwhile, by the kernel's count, and nanoseconds
// for each. --bound: both on one CPU, so that each pass is a context switch.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "puppet.h"

namespace {

uint64_t Switches() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw) + static_cast<uint64_t>(usage.ru_nivcsw);
}

void Pass(int from, int to, uint64_t rounds, bool begins) {
  char byte = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    if (begins && ::write(to, &byte, 1) != 1) std::abort();
    if (::read(from, &byte, 1) != 1) std::abort();
    if (!begins && ::write(to, &byte, 1) != 1) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* text = workload::Option(argc, argv, "--rounds");
  const uint64_t rounds = text == nullptr ? 100'000 : std::strtoull(text, nullptr, 10);
  if (std::strcmp(argv[argc - 1], "--bound") == 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(::sched_getcpu(), &cpus);
    ::sched_setaffinity(0, sizeof(cpus), &cpus);
  }
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) return 1;
  const uint64_t switches = Switches();
  const uint64_t start_ns = workload::ClockNs(CLOCK_MONOTONIC);
  std::thread other([&] { Pass(there[0], back[1], rounds, false); });
  Pass(back[0], there[1], rounds, true);
  other.join();
  const uint64_t duration_ns = workload::ClockNs(CLOCK_MONOTONIC) - start_ns;
  const uint64_t count = Switches() - switches;
  std::printf("{\"switches\": %lu, \"ns_per_switch\": %.1f, \"duration_ns\": %lu}\n", count,
              static_cast<double>(duration_ns) / static_cast<double>(count), duration_ns);
  return 0;
}
