// A program of 16 threads for record_attach_test.py that notices whether anything is not as it
// should be until its standard input ends: values in registers and memory, results and error
// numbers of system calls, how long waits with a limit take. It prints a line for each thread when
// all have ended; its status is 1 where one of them found something wrong, which goes to standard
// error.
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <immintrin.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Added to each limit of a wait: a machine with other work is slow, but a limit that began again
// with each of many attaches would be longer.
constexpr double kSlackSeconds = 8;

std::atomic<bool> ends{false};
std::atomic<int> failures{0};

void Fail(const char* what, long got, long wanted) {
  const int error = errno;
  ++failures;
  std::fprintf(stderr, "%s: %ld, not %ld (%s)\n", what, got, wanted, std::strerror(error));
}

void Expect(const char* what, long got, long wanted) {
  if (got != wanted) Fail(what, got, wanted);
}

double Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

class LimitCheck {
 public:
  LimitCheck(const char* what, double seconds) : what_(what), limit_(seconds) {}
  ~LimitCheck() {
    const double seconds = Now() - begin_;
    if (seconds < limit_ - 0.002 || seconds > limit_ + kSlackSeconds) {
      Fail(what_, static_cast<long>(seconds * 1000), static_cast<long>(limit_ * 1000));
    }
  }

 private:
  const char* what_;
  double limit_;
  double begin_ = Now();
};

void Allocate() {
  std::mt19937 random(1);
  std::vector<std::pair<unsigned char*, size_t>> blocks(64);
  while (!ends) {
    auto& [bytes, size] = blocks[random() % blocks.size()];
    for (size_t i = 0; i < size; i += 61)
      Expect("a block", bytes[i], static_cast<long>(size & 0xff));
    std::free(bytes);
    size = random() % 20'000;
    bytes = static_cast<unsigned char*>(std::malloc(size));
    std::memset(bytes, static_cast<int>(size & 0xff), size);
  }
  for (auto& [bytes, size] : blocks) std::free(bytes);
}

__attribute__((noinline)) void Throw(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  Throw(depth - 1);
  asm volatile("");
}

void ThrowAndCatch() {
  while (!ends) {
    try {
      Throw(10);
      Fail("an exception", 0, 1);
    } catch (const std::runtime_error& error) {
      Expect("an exception's text", std::strcmp(error.what(), "thrown"), 0);
    }
  }
}

void Fork() {
  while (!ends) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::free(std::malloc(1000));
      ::_exit(7);
    }
    int status = 0;
    Expect("waitpid", ::waitpid(child, &status, 0), child);
    Expect("status of a child", WEXITSTATUS(status), 7);
    ::usleep(2000);
  }
}

void Execute() {
  while (!ends) {
    char path[] = "/bin/true";
    char* arguments[] = {path, nullptr};
    pid_t child = 0;
    Expect("posix_spawn", ::posix_spawn(&child, path, nullptr, nullptr, arguments, nullptr), 0);
    int status = -1;
    Expect("waitpid", ::waitpid(child, &status, 0), child);
    Expect("status of a program", status, 0);
    ::usleep(2000);
  }
}

std::atomic<long> handled{0};
void Handle(int /*signal*/) {
  const int error = errno;
  errno = 5;
  ++handled;
  errno = error;
}

// A timer signals this thread, which computes and sleeps.
void HandleSignals() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR2;
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  timer_t timer;
  Expect("timer_create", ::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec period{{0, 1'000'000}, {0, 1'000'000}};
  ::timer_settime(timer, 0, &period, nullptr);
  while (!ends) {
    const long before = handled;
    errno = 0;
    const timespec pause{0, 500'000};
    const int result = ::nanosleep(&pause, nullptr);
    if (result != 0 && (errno != EINTR || handled == before)) Fail("nanosleep", result, 0);
    volatile double value = 1;
    for (int i = 0; i < 2000; ++i) value = value * 3 / 3;
    if (value != 1) Fail("a product", 0, 1);
  }
  ::timer_delete(timer);
}

void LoadAndUnload() {
  while (!ends) {
    void* library = ::dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || ::dlsym(library, "res_query") == nullptr) Fail("dlopen", 0, 1);
    if (library != nullptr) Expect("dlclose", ::dlclose(library), 0);
    ::usleep(500);
  }
}

// Values that stay in vector registers and flags throughout a loop.
__attribute__((target("avx2"), noinline)) void ComputeWithVectors() {
  unsigned round = 0;
  while (!ends) {
    ++round;
    const unsigned control = _MM_GET_ROUNDING_MODE();
    _MM_SET_ROUNDING_MODE(round % 2 == 0 ? _MM_ROUND_UP : _MM_ROUND_DOWN);
    const __m256i one = _mm256_set1_epi64x(1);
    __m256i a = _mm256_setr_epi64x(1, 2, 3, 4), b = _mm256_setr_epi64x(5, 6, 7, 8);
    __m256i c = _mm256_setr_epi64x(9, 10, 11, 12), d = _mm256_setr_epi64x(13, 14, 15, 16);
    constexpr long kRounds = 100'000;
    for (long i = 0; i < kRounds; ++i) {
      asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));
      a = _mm256_add_epi64(a, one);
      b = _mm256_add_epi64(b, one);
      c = _mm256_add_epi64(c, one);
      d = _mm256_add_epi64(d, one);
    }
    long values[16];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values), a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + 4), b);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + 8), c);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + 12), d);
    for (long i = 0; i < 16; ++i) Expect("a vector", values[i], i + 1 + kRounds);
    Expect("rounding", static_cast<long>(_MM_GET_ROUNDING_MODE()),
           static_cast<long>(round % 2 == 0 ? _MM_ROUND_UP : _MM_ROUND_DOWN));
    _MM_SET_ROUNDING_MODE(control);
  }
}

// A function that calls none keeps its variables below the stack pointer.
__attribute__((noinline)) unsigned long UseRedZone(unsigned long seed) {
  volatile unsigned long below[12];
  for (unsigned i = 0; i < 12; ++i) below[i] = seed + i;
  for (int round = 0; round < 1000; ++round) {
    for (unsigned i = 0; i < 12; ++i) below[i] = below[i] + 1;
  }
  unsigned long sum = 0;
  for (unsigned i = 0; i < 12; ++i) sum += below[i];
  return sum;
}

void ComputeInRedZone() {
  for (unsigned long seed = 0; !ends; ++seed) {
    Expect("a sum", static_cast<long>(UseRedZone(seed)),
           static_cast<long>(12 * seed + 66 + 12'000));
  }
}

// Two threads play ping-pong over a pair of sockets, each time with another call.
void Send(int fd) {
  char byte = 'a';
  while (!ends) {
    Expect("send", ::send(fd, &byte, 1, MSG_NOSIGNAL), 1);
    Expect("recv of the answer", ::recv(fd, &byte, 1, 0), 1);
  }
  ::shutdown(fd, SHUT_RDWR);
}

void Answer(int fd) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  for (unsigned round = 0;; ++round) {
    if (round % 4 == 0) Expect("epoll_wait", ::epoll_wait(epoll, &event, 1, -1), 1);
    pollfd one{fd, POLLIN, 0};
    if (round % 4 == 1) Expect("poll", ::poll(&one, 1, -1), 1);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    if (round % 4 == 2) Expect("select", ::select(fd + 1, &set, nullptr, nullptr, nullptr), 1);
    char byte = 0;
    const ssize_t got = ::read(fd, &byte, 1);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) break;
    Expect("read", got, 1);
    if (::send(fd, &byte, 1, MSG_NOSIGNAL) != 1) break;
  }
  ::close(epoll);
}

std::mutex mutex;
std::condition_variable changed;
long turn = 0;

void TakeTurns(long mine) {
  std::unique_lock lock(mutex);
  while (!ends) {
    changed.wait(lock, [&] { return ends || turn % 2 == mine; });
    ++turn;
    changed.notify_all();
  }
  changed.notify_all();
}

void WaitWithLimits() {
  int pipe[2];
  Expect("pipe", ::pipe2(pipe, O_CLOEXEC), 0);
  while (!ends) {
    {
      const LimitCheck check("seconds of poll in ms", 0.02);
      pollfd one{pipe[0], POLLIN, 0};
      Expect("poll with limit", ::poll(&one, 1, 20), 0);
    }
    {
      const LimitCheck check("seconds of select in ms", 0.01);
      timeval limit{0, 10'000};
      Expect("select with limit", ::select(0, nullptr, nullptr, nullptr, &limit), 0);
    }
    {
      const LimitCheck check("seconds of nanosleep in ms", 0.01);
      const timespec limit{0, 10'000'000};
      Expect("nanosleep with limit", ::nanosleep(&limit, nullptr), 0);
    }
  }
}

void WaitForCondition() {
  std::mutex own;
  std::condition_variable never;
  std::unique_lock lock(own);
  while (!ends) {
    const LimitCheck check("seconds of a condition in ms", 0.015);
    const auto result = never.wait_for(lock, std::chrono::milliseconds(15));
    Expect("wait_for", result == std::cv_status::timeout ? 0 : 1, 0);
  }
}

void WaitForSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  while (!ends) {
    const timespec limit{0, 5'000'000};
    errno = 0;
    const int result = ::sigtimedwait(&set, nullptr, &limit);
    if (result != -1 || errno != EAGAIN) Fail("sigtimedwait", result, -1);
  }
}

void StartThreads() {
  while (!ends) {
    long value = 0;
    std::thread([&] { value = 42; }).join();
    Expect("a thread's value", value, 42);
    void* memory =
        ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static_cast<char*>(memory)[5] = 1;
    Expect("munmap", ::munmap(memory, 1 << 20), 0);
  }
}

}  // namespace

int main() {
  // SIGCHLD, because fork blocks signals for a moment: a child that ends then, although the program
  // ignores it, ends the waits of another thread with EINTR, with and without an attach.
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  ::sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  struct sigaction action {};
  action.sa_handler = Handle;
  ::sigaction(SIGUSR2, &action, nullptr);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 2;
  const std::vector<std::pair<const char*, std::function<void()>>> all = {
      {"allocates", Allocate},
      {"allocates too", Allocate},
      {"throws", ThrowAndCatch},
      {"forks", Fork},
      {"executes", Execute},
      {"handles signals", HandleSignals},
      {"loads and unloads", LoadAndUnload},
      {"computes with vectors",
       __builtin_cpu_supports("avx2") ? ComputeWithVectors : ComputeInRedZone},
      {"computes in the red zone", ComputeInRedZone},
      {"sends", [&] { Send(pair[0]); }},
      {"answers", [&] { Answer(pair[1]); }},
      {"takes turns", [] { TakeTurns(0); }},
      {"takes other turns", [] { TakeTurns(1); }},
      {"waits with limits", WaitWithLimits},
      {"waits for a condition", WaitForCondition},
      {"waits for signals", WaitForSignals},
      {"starts threads", StartThreads},
  };
  std::vector<std::thread> threads;
  for (const auto& [name, work] : all) threads.emplace_back(work);
  std::printf("running\n");
  std::fflush(stdout);
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(STDIN_FILENO, &byte, 1)) > 0) {
  }
  Expect("end of standard input", got, 0);
  ends = true;
  for (size_t i = 0; i < all.size(); ++i) {
    threads[i].join();
    std::printf("%s\n", all[i].first);
  }
  return failures == 0 ? 0 : 1;
}
