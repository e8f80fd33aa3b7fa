// A program that does odd things to itself, step by step as its arguments say, and tells how it
// sees itself. It loads CUDA at its first launch, so that a step may come before or after that.
//   launch=N         N launches and a synchronization
//   unload           dlclose of the CUDA runtime
//   view             a line of JSON: ids, capabilities, signals, limits, descriptors, environment
//   map-driver       the CUDA driver's library, which is not used
//   wait             until standard input ends
//   allocate=N       N MiB, which it keeps
//   close-all        every descriptor from 3 on
//   seccomp=ACTION   errno or kill: of each system call but those that work without new
//                    descriptors, files and processes; seccomp-all=ACTION: for all threads
//   no-network=ACTION  of those that open sockets and send
//   chroot=DIR  user=UID  limit=NAME:N (as, nofile, memlock, nproc)
//   faults=N         N accesses to address 0, each handled on an alternate stack and jumped out of
//   threads=N        N threads at the same time, each with one launch
//   forks=N          N children one after another that do nothing
//   fork  vfork  spawn  thread-exec  traced
//                    the steps after it in another process: a fork; a new image by vfork, by
//                    posix_spawn, by exec on a second thread; under a debugger. Its status is ours
//   pthread-exit     the end of this thread
//   sigwait          SIGTERM is blocked, and a second thread waits for it
//   thread           the steps after it on a second thread; the first one has ended
//   status=N  abort  _exit=N
#include "tests/system/odd_program.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/workloads/puppet.h"

extern "C" XPU_FRAME void odd_kernel() {}

namespace odd {
namespace {

struct Cuda {
  void* library = nullptr;
  decltype(&cudaLaunchKernel) launch = nullptr;
  decltype(&cudaDeviceSynchronize) synchronize = nullptr;

  void Load() {
    if (library != nullptr) return;
    library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::_Exit(98);
    }
    launch = reinterpret_cast<decltype(launch)>(dlsym(library, "cudaLaunchKernel"));
    synchronize = reinterpret_cast<decltype(synchronize)>(dlsym(library, "cudaDeviceSynchronize"));
  }
  void Unload() {
    Check(library != nullptr && dlclose(library) == 0, "dlclose");
    *this = {};
  }
};

Cuda g_cuda;

void LaunchOnce() {
  Check(g_cuda.launch(reinterpret_cast<const void*>(&odd_kernel), dim3(1), dim3(1), nullptr, 0,
                      nullptr) == cudaSuccess,
        "cudaLaunchKernel");
}

XPU_FRAME void Launch(long count) {
  g_cuda.Load();
  for (long i = 0; i < count; ++i) LaunchOnce();
  Check(g_cuda.synchronize() == cudaSuccess, "cudaDeviceSynchronize");
}
sigjmp_buf g_behind_fault;
volatile sig_atomic_t g_faults = 0;

void OnFault(int /*signal*/) {
  g_faults = g_faults + 1;
  siglongjmp(g_behind_fault, 1);
}

void Fault(long count) {
  static char memory[64 << 10];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  Check(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  struct sigaction action {};
  action.sa_handler = &OnFault;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  Check(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
  volatile int* volatile nowhere = nullptr;
  for (long i = 0; i < count; ++i) {
    if (sigsetjmp(g_behind_fault, 1) == 0) *nowhere = 1;
  }
  std::printf("faults %d\n", static_cast<int>(g_faults));
}

void RunThreads(long count) {
  g_cuda.Load();
  static pthread_barrier_t all_there;
  pthread_barrier_init(&all_there, nullptr, static_cast<unsigned>(count));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  std::vector<pthread_t> threads(static_cast<size_t>(count));
  const auto run = [](void*) -> void* {
    pthread_barrier_wait(&all_there);
    LaunchOnce();
    return nullptr;
  };
  for (pthread_t& thread : threads) {
    errno = pthread_create(&thread, &attributes, run, nullptr);
    Check(errno == 0, "pthread_create");
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  Check(g_cuda.synchronize() == cudaSuccess, "cudaDeviceSynchronize");
  std::printf("threads %ld\n", count);
}

void MapDriver() { Check(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr, "libcuda"); }

void Allocate(long mebibytes) {
  for (long i = 0; i < mebibytes; ++i) Check(std::malloc(1 << 20) != nullptr, "malloc");
}

void WaitForInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int StatusOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void ForkMany(long count) {
  long sum = 0;
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    Check(child >= 0, "fork");
    if (child == 0) _exit(static_cast<int>(i % 7));
    sum += StatusOf(child);
  }
  std::printf("forks %ld, their statuses %ld\n", count, sum);
}

std::vector<char*> OwnCommand(char** rest) {
  static char name[] = "odd_program";
  std::vector<char*> command = {name};
  for (; *rest != nullptr; ++rest) command.push_back(*rest);
  command.push_back(nullptr);
  return command;
}

constexpr char kSelf[] = "/proc/self/exe";

[[noreturn]] void VforkAndExec(char** rest) {
  const std::vector<char*> command = OwnCommand(rest);
  const pid_t child = vfork();
  if (child == 0) {
    execv(kSelf, command.data());
    _exit(97);
  }
  std::exit(StatusOf(child));
}

[[noreturn]] void Spawn(char** rest) {
  const std::vector<char*> command = OwnCommand(rest);
  pid_t child = 0;
  errno = posix_spawn(&child, kSelf, nullptr, nullptr, command.data(), environ);
  Check(errno == 0, "posix_spawn");
  std::exit(StatusOf(child));
}

[[noreturn]] void ExecOnThread(char** rest) {
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    const std::vector<char*> command = OwnCommand(static_cast<char**>(argument));
    execv(kSelf, command.data());
    Fail("exec");
  };
  Check(pthread_create(&thread, nullptr, run, rest) == 0, "pthread_create");
  pthread_join(thread, nullptr);
  Fail("the thread came back");
}

void Do(std::string_view step, char** rest);

[[noreturn]] void ContinueOnThread(char** rest) {
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    usleep(100'000);
    for (char** step = static_cast<char**>(argument); *step != nullptr; ++step) Do(*step, step + 1);
    std::exit(0);
  };
  Check(pthread_create(&thread, nullptr, run, rest) == 0, "pthread_create");
  pthread_exit(nullptr);
}

[[noreturn]] void EndThread() {
  std::atexit([] { std::printf("exit handler\n"); });
  pthread_exit(nullptr);
}

void WaitForSignal() {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
  pthread_t thread;
  const auto run = [](void* /*argument*/) -> void* {
    sigset_t terminates;
    sigemptyset(&terminates);
    sigaddset(&terminates, SIGTERM);
    std::printf("waits\n");
    int signal = 0;
    Check(sigwait(&terminates, &signal) == 0, "sigwait");
    std::printf("took %d\n", signal);
    std::exit(3);
  };
  Check(pthread_create(&thread, nullptr, run, nullptr) == 0, "pthread_create");
  pthread_join(thread, nullptr);
}

// Runs the rest itself in a child that this process traces as a debugger does: every signal and
// every exec stops it, and it goes on with what it got.
void ForkTraced() {
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    Check(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0, "PTRACE_TRACEME");
    raise(SIGSTOP);
    return;
  }
  int stops = 0;
  while (true) {
    int status = 0;
    Check(waitpid(child, &status, __WALL) == child, "waitpid");
    if (WIFEXITED(status)) {
      std::printf("traced, stops %d\n", stops);
      std::exit(WEXITSTATUS(status));
    }
    if (WIFSIGNALED(status)) std::exit(128 + WTERMSIG(status));
    ++stops;
    const int signal =
        WSTOPSIG(status) == SIGSTOP || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    Check(ptrace(PTRACE_CONT, child, nullptr, signal) == 0, "PTRACE_CONT");
  }
}

void ForkRest() {
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child != 0) std::exit(StatusOf(child));
}

// True: `step` is `name`, with or without a value, which `value` then is.
bool Is(std::string_view step, std::string_view name, std::string* value) {
  if (!step.starts_with(name)) return false;
  step.remove_prefix(name.size());
  if (!step.empty() && step.front() != '=') return false;
  *value = step.empty() ? "" : std::string(step.substr(1));
  return true;
}

void ChangeSelf(std::string_view step) {
  std::string value;
  if (Is(step, "close-all", &value)) {
    Check(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
  } else if (Is(step, "seccomp", &value)) {
    FilterStrictly(value, 0);
  } else if (Is(step, "seccomp-all", &value)) {
    FilterStrictly(value, SECCOMP_FILTER_FLAG_TSYNC);
  } else if (Is(step, "no-network", &value)) {
    FilterNetwork(value);
  } else if (Is(step, "chroot", &value)) {
    Check(chroot(value.c_str()) == 0 && chdir("/") == 0, "chroot");
  } else if (Is(step, "user", &value)) {
    const auto id = static_cast<unsigned>(std::atoi(value.c_str()));
    Check(setgroups(0, nullptr) == 0 && setgid(id) == 0 && setuid(id) == 0, "setuid");
  } else if (Is(step, "limit", &value)) {
    Limit(value);
  } else {
    std::fprintf(stderr, "unknown step: %s\n", std::string(step).c_str());
    std::exit(96);
  }
}

// False: `step` is none of these.
bool StartAnother(std::string_view step, char** rest) {
  if (step == "fork") {
    ForkRest();
  } else if (step == "traced") {
    ForkTraced();
  } else if (step == "vfork") {
    VforkAndExec(rest);
  } else if (step == "spawn") {
    Spawn(rest);
  } else if (step == "thread") {
    ContinueOnThread(rest);
  } else if (step == "pthread-exit") {
    EndThread();
  } else if (step == "sigwait") {
    WaitForSignal();
  } else if (step == "thread-exec") {
    ExecOnThread(rest);
  } else {
    return false;
  }
  return true;
}

void Do(std::string_view step, char** rest) {
  std::string value;
  if (Is(step, "launch", &value)) return Launch(std::atol(value.c_str()));
  if (Is(step, "unload", &value)) return g_cuda.Unload();
  if (Is(step, "view", &value)) return View();
  if (Is(step, "map-driver", &value)) return MapDriver();
  if (Is(step, "allocate", &value)) return Allocate(std::atol(value.c_str()));
  if (Is(step, "wait", &value)) return WaitForInput();
  if (Is(step, "faults", &value)) return Fault(std::atol(value.c_str()));
  if (Is(step, "threads", &value)) return RunThreads(std::atol(value.c_str()));
  if (Is(step, "forks", &value)) return ForkMany(std::atol(value.c_str()));
  if (Is(step, "status", &value)) std::exit(std::atoi(value.c_str()));
  if (Is(step, "_exit", &value)) _exit(std::atoi(value.c_str()));
  if (Is(step, "abort", &value)) std::abort();
  if (!StartAnother(step, rest)) ChangeSelf(step);
}

}  // namespace
}  // namespace odd

int main(int /*argc*/, char** argv) {
  // Nothing is left in a buffer that a fork or an exec would copy or lose.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  for (char** step = argv + 1; *step != nullptr; ++step) odd::Do(*step, step + 1);
  return 0;
}
