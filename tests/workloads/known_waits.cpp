// Waits of known kinds, one after the other, each in a function of its own. Prints as JSON how long
// each took by its own clock, in nanoseconds, and the threads and locks that matter. With --cycles
// N it waits and works shortly, N times, and prints nothing.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <queue>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "puppet.h"

namespace {

constexpr timespec kWait{0, 120'000'000};

uint64_t NowNs(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void SleepFor() { ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kWait, nullptr); }

long OwnTid() { return ::syscall(SYS_gettid); }

// A thread with a name, whose number is known when the constructor returns.
class NamedThread {
 public:
  template <typename Run>
  NamedThread(const char* name, Run run)
      : thread_([this, name, run] {
          ::pthread_setname_np(::pthread_self(), name);
          tid_ = OwnTid();
          is_known_.release();
          run();
        }) {
    is_known_.acquire();
  }
  long tid() const { return tid_; }
  void Join() { thread_.join(); }

 private:
  std::binary_semaphore is_known_{0};
  long tid_ = 0;
  std::thread thread_;
};

struct Pool {
  std::mutex mutex;
  std::condition_variable has_work, is_done;
  int waiting = 0, unfinished = 0;
  bool is_over = false;

  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      has_work.wait(lock, [this] { return waiting > 0 || is_over; });
      if (waiting == 0) return;
      --waiting;
      lock.unlock();
      SleepFor();
      lock.lock();
      if (--unfinished == 0) is_done.notify_one();
    }
  }
};

std::string report;

void Report(const char* name, uint64_t value) {
  report += report.empty() ? "{" : ", ";
  report += "\"" + std::string(name) + "\": " + std::to_string(value);
}

}  // namespace

extern "C" {

XPU_FRAME void WaitInSleep() { SleepFor(); }

XPU_FRAME void WaitInPoll() { ::poll(nullptr, 0, 120); }

XPU_FRAME void WaitInPipe(int read_end) {
  char byte = 0;
  if (::read(read_end, &byte, 1) != 1) std::perror("read");
}

XPU_FRAME void WaitInEvent(int event) {
  eventfd_t value = 0;
  if (::eventfd_read(event, &value) != 0) std::perror("read");
}

// Uninterruptible.
XPU_FRAME pid_t WaitInVfork() {
  const pid_t child = ::vfork();
  if (child == 0) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kWait, nullptr);
    ::_exit(0);
  }
  return child;
}

XPU_FRAME void WaitInPageFault(volatile char* page) {
  if (page != MAP_FAILED) *page = 1;
}

XPU_FRAME void WaitInFutex() {
  uint32_t word = 0;
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &kWait, nullptr, 0);
}

XPU_FRAME void WaitForMutex(std::mutex* mutex) {
  mutex->lock();
  mutex->unlock();
}

XPU_FRAME void ReleaseMutex(std::mutex* mutex) { mutex->unlock(); }

XPU_FRAME void WaitForCondition(std::mutex* mutex, std::condition_variable* condition,
                                const bool* is_set) {
  std::unique_lock lock(*mutex);
  condition->wait(lock, [is_set] { return *is_set; });
}

XPU_FRAME void WaitForJoin(NamedThread* thread) { thread->Join(); }

XPU_FRAME void WaitForPool(Pool* pool) {
  std::unique_lock lock(pool->mutex);
  pool->is_done.wait(lock, [pool] { return pool->unfinished == 0; });
}

// Past the page cache; of a file system without that, nothing is read.
XPU_FRAME void WaitForDisk(int file) {
  constexpr size_t kBytes = 1 << 16;
  void* buffer = std::aligned_alloc(4096, kBytes);
  for (int i = 0; i < 100 && ::pread(file, buffer, kBytes, 0) > 0; ++i) continue;
  std::free(buffer);
}

// Far below the minimum that the test gives: these are in the sum of the thread.
XPU_FRAME void WaitShortly(int count) {
  const timespec shortly{0, 1'000'000};
  for (int i = 0; i < count; ++i) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &shortly, nullptr);
}
}

namespace {

template <typename Wait>
void Measure(const char* name, Wait wait) {
  const uint64_t start_ns = NowNs();
  wait();
  Report(name, NowNs() - start_ns);
}

void MeasurePipe() {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  NamedThread writer("writer", [write_end = ends[1]] {
    SleepFor();
    const char byte = 1;
    if (::write(write_end, &byte, 1) != 1) std::perror("write");
  });
  Measure("pipe", [&] { WaitInPipe(ends[0]); });
  Report("pipe_waker", static_cast<uint64_t>(writer.tid()));
  writer.Join();
}

void MeasureEvent() {
  const int event = ::eventfd(0, EFD_CLOEXEC);
  NamedThread writer("writer", [event] {
    SleepFor();
    ::eventfd_write(event, 1);
  });
  Measure("event", [&] { WaitInEvent(event); });
  Report("event_waker", static_cast<uint64_t>(writer.tid()));
  writer.Join();
}

void MeasureVfork() {
  pid_t child = 0;
  Measure("vfork", [&] { child = WaitInVfork(); });
  ::waitpid(child, nullptr, 0);
}

// The page fault wakes a thread that waits for it, and ends when that thread provides the page.
// Nothing is measured where that is not allowed.
void MeasurePageFault() {
  const auto faults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* const page =
      ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<uint64_t>(page);
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  uffdio_register range{};
  range.range = {.start = address, .len = page_bytes};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (faults < 0 || ::ioctl(faults, UFFDIO_API, &api) != 0 ||
      ::ioctl(faults, UFFDIO_REGISTER, &range) != 0) {
    return;
  }
  NamedThread provider("provider", [&] {
    uffd_msg message{};
    if (::read(faults, &message, sizeof(message)) < 0) std::perror("read");
    SleepFor();
    uffdio_zeropage zero{.range = range.range, .mode = 0, .zeropage = 0};
    ::ioctl(faults, UFFDIO_ZEROPAGE, &zero);
  });
  SleepFor();
  Measure("page_fault", [&] { WaitInPageFault(static_cast<char*>(page)); });
  Report("page_fault_waker", static_cast<uint64_t>(provider.tid()));
  provider.Join();
}

void MeasureMutex() {
  std::mutex mutex;
  std::binary_semaphore is_held{0};
  NamedThread holder("holder", [&] {
    mutex.lock();
    is_held.release();
    SleepFor();
    ReleaseMutex(&mutex);
  });
  is_held.acquire();
  Measure("mutex", [&] { WaitForMutex(&mutex); });
  Report("mutex_waker", static_cast<uint64_t>(holder.tid()));
  Report("mutex_address", reinterpret_cast<uint64_t>(&mutex));
  holder.Join();
}

void MeasureCondition() {
  std::mutex mutex;
  std::condition_variable condition;
  bool is_set = false;
  NamedThread setter("setter", [&] {
    SleepFor();
    const std::lock_guard lock(mutex);
    is_set = true;
    condition.notify_one();
  });
  Measure("condition", [&] { WaitForCondition(&mutex, &condition, &is_set); });
  Report("condition_waker", static_cast<uint64_t>(setter.tid()));
  setter.Join();
}

void MeasureJoin() {
  NamedThread joined("joined", [] { SleepFor(); });
  Measure("join", [&] { WaitForJoin(&joined); });
  Report("join_waker", static_cast<uint64_t>(joined.tid()));
}

void MeasurePool() {
  Pool pool;
  std::vector<std::unique_ptr<NamedThread>> workers;
  workers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    workers.push_back(std::make_unique<NamedThread>("worker", [&] { pool.Work(); }));
  }
  {
    const std::lock_guard lock(pool.mutex);
    pool.waiting = pool.unfinished = 4;
  }
  pool.has_work.notify_all();
  Measure("pool", [&] { WaitForPool(&pool); });
  {
    const std::lock_guard lock(pool.mutex);
    pool.is_over = true;
  }
  pool.has_work.notify_all();
  for (const auto& worker : workers) worker->Join();
}

}  // namespace

// Waits and works in turns, in functions of their own, and reports nothing.
XPU_FRAME void WorkShortly() {
  const uint64_t end_ns = NowNs() + 300'000;
  while (NowNs() < end_ns) continue;
}

int main(int count, char** arguments) {
  if (count > 2 && std::strcmp(arguments[1], "--cycles") == 0) {
    for (int i = std::atoi(arguments[2]); i > 0; --i) {
      WaitShortly(1);
      WorkShortly();
    }
    return 0;
  }
  const uint64_t start_ns = NowNs(), start_cpu_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  Measure("sleep", WaitInSleep);
  Measure("poll", WaitInPoll);
  Measure("futex", WaitInFutex);
  MeasurePipe();
  MeasureEvent();
  MeasureVfork();
  MeasurePageFault();
  MeasureMutex();
  MeasureCondition();
  MeasureJoin();
  MeasurePool();
  const int file = ::open("/proc/self/exe", O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (file >= 0) Measure("disk", [&] { WaitForDisk(file); });
  Measure("short", [] { WaitShortly(20); });
  Report("running", NowNs(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns);
  Report("lifetime", NowNs() - start_ns);
  std::printf("%s}\n", report.c_str());
  return 0;
}
