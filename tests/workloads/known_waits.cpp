// Waits of known kinds, one after the other, each in a function of its own. Prints as JSON how long
// each took by its own clock, in nanoseconds.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "puppet.h"

namespace {

constexpr timespec kWait{0, 120'000'000};

uint64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void SleepFor() { ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kWait, nullptr); }

}  // namespace

extern "C" {

XPU_FRAME uint64_t WaitInSleep() {
  const uint64_t start_ns = NowNs();
  SleepFor();
  return NowNs() - start_ns;
}

XPU_FRAME uint64_t WaitInPoll() {
  const uint64_t start_ns = NowNs();
  ::poll(nullptr, 0, 120);
  return NowNs() - start_ns;
}

XPU_FRAME uint64_t WaitInPipe(int read_end) {
  const uint64_t start_ns = NowNs();
  char byte = 0;
  const ssize_t got = ::read(read_end, &byte, 1);
  return got == 1 ? NowNs() - start_ns : 0;
}

XPU_FRAME uint64_t WaitInFutex() {
  const uint64_t start_ns = NowNs();
  uint32_t word = 0;
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &kWait, nullptr, 0);
  return NowNs() - start_ns;
}

// Far below the minimum that the test gives: these are in the sum of the thread.
XPU_FRAME void WaitShortly(int count) {
  const timespec shortly{0, 1'000'000};
  for (int i = 0; i < count; ++i) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &shortly, nullptr);
}
}

int main() {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const uint64_t sleep_ns = WaitInSleep();
  const uint64_t poll_ns = WaitInPoll();
  const uint64_t futex_ns = WaitInFutex();
  std::thread writer([write_end = ends[1]] {
    SleepFor();
    const char byte = 1;
    if (::write(write_end, &byte, 1) != 1) std::perror("write");
  });
  const uint64_t pipe_ns = WaitInPipe(ends[0]);
  writer.join();
  const uint64_t short_start_ns = NowNs();
  WaitShortly(20);
  std::printf("{\"sleep\": %lu, \"poll\": %lu, \"futex\": %lu, \"pipe\": %lu, \"short\": %lu}\n",
              sleep_ns, poll_ns, futex_ns, pipe_ns, NowNs() - short_start_ns);
  return 0;
}
