// A program that does odd things to itself, step by step as its arguments say, and tells how it
// sees itself. It loads CUDA at its first launch, so that a step may come before or after that.
//   launch=N         N launches and a synchronisation
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
//                    the steps behind it in another process: a fork; a new image by vfork, by
//                    posix_spawn, by exec on a second thread; under a debugger. Its status is ours
//   status=N  abort  _exit=N
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/workloads/json_line.h"
#include "tests/workloads/puppet.h"

extern "C" XPU_FRAME void odd_kernel() {}

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(99);
}

void Check(bool works, const char* what) {
  if (!works) Fail(what);
}

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

// JsonLine knows no control characters.
std::string Plain(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::string plain(text);
  std::replace_if(
      plain.begin(), plain.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return plain;
}

// The lines of /proc/self/status that do not count what happened.
void AddStatus(workload::JsonLine* json) {
  constexpr std::string_view kNames[] = {"Umask",        "Tgid",         "Uid",
                                         "Gid",

                                         "Groups",       "SigQ",         "SigPnd",
                                         "ShdPnd",       "SigBlk",       "SigIgn",
                                         "SigCgt",       "CapInh",       "CapPrm",
                                         "CapEff",       "CapBnd",       "CapAmb",
                                         "NoNewPrivs",   "Seccomp",      "Seccomp_filters",
                                         "Cpus_allowed", "Mems_allowed", "Speculation_Store_Bypass",
                                         "THP_enabled",  "TracerPid",    "CoreDumping"};
  constexpr std::string_view kDiffer[] = {"Tgid", "SigQ"};
  FILE* file = std::fopen("/proc/self/status", "r");
  Check(file != nullptr, "/proc/self/status");
  char line[4096];
  json->BeginObject("status");
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    const std::string_view text(line, std::strcspn(line, "\n"));
    const size_t colon = std::min(text.find(':'), text.size() - 1);
    const std::string_view name = text.substr(0, colon);
    const bool known = std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
    const bool differs =
        std::find(std::begin(kDiffer), std::end(kDiffer), name) != std::end(kDiffer);
    if (known && !differs) json->Add(name, Plain(text.substr(colon + 1)));
  }
  json->EndObject();
  std::fclose(file);
}

void AddLimits(workload::JsonLine* json) {
  json->BeginArray("limits");
  for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
    struct rlimit limit {};
    Check(getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0, "getrlimit");
    json->Add("", std::to_string(limit.rlim_cur) + "/" + std::to_string(limit.rlim_max));
  }
  json->EndArray();
}

std::string LinkOf(const std::string& path) {
  char target[4096];
  const ssize_t n = readlink(path.c_str(), target, sizeof(target));
  return n < 0 ? "?" : std::string(target, static_cast<size_t>(n));
}

void AddDescriptors(workload::JsonLine* json) {
  DIR* folder = opendir("/proc/self/fd");
  Check(folder != nullptr, "/proc/self/fd");
  std::vector<std::string> found;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == dirfd(folder)) continue;
    const std::string name = entry->d_name;
    // Of what has no name the number differs from run to run.
    const std::string link = LinkOf("/proc/self/fd/" + name);
    found.push_back(name + " " + link.substr(0, link.find(":[")));
  }
  closedir(folder);
  std::sort(found.begin(), found.end());
  json->BeginArray("descriptors");
  for (const std::string& descriptor : found) json->Add("", descriptor);
  json->EndArray();
}

void AddSignals(workload::JsonLine* json) {
  json->BeginArray("handlers");
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    const char* what = action.sa_handler == SIG_DFL   ? "default"
                       : action.sa_handler == SIG_IGN ? "ignore"
                                                      : "own";
    json->Add("", std::string(what) + " " + std::to_string(action.sa_flags));
  }
  json->EndArray();
  stack_t stack{};
  Check(sigaltstack(nullptr, &stack) == 0, "sigaltstack");
  json->Add("alternate_stack", static_cast<uint64_t>(stack.ss_flags));
}

std::string FirstLine(const char* path) {
  FILE* file = std::fopen(path, "r");
  if (file == nullptr) return "?";
  char line[256] = "";
  if (std::fgets(line, sizeof(line), file) == nullptr) line[0] = '\0';
  std::fclose(file);
  return std::string(line, std::strcspn(line, "\n"));
}

void AddEnvironment(workload::JsonLine* json) {
  constexpr std::string_view kOurs[] = {
      "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "XPU_INJECT="};
  json->BeginArray("environment");
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool ours = std::any_of(std::begin(kOurs), std::end(kOurs),
                                  [&](std::string_view name) { return text.starts_with(name); });
    if (!ours) json->Add("", Plain(text));
  }
  json->EndArray();
}

void View() {
  workload::JsonLine json;
  AddStatus(&json);
  AddLimits(&json);
  AddDescriptors(&json);
  AddSignals(&json);
  AddEnvironment(&json);
  for (const char* file : {"oom_score_adj", "coredump_filter", "timerslack_ns", "personality",
                           "cgroup", "sessionid", "loginuid", "attr/current"}) {
    json.Add(file, FirstLine((std::string("/proc/self/") + file).c_str()));
  }
  for (const char* name : {"mnt", "pid", "net", "user", "uts", "ipc", "cgroup", "time"}) {
    json.Add(name, LinkOf(std::string("/proc/self/ns/") + name));
  }
  json.Add("folder", LinkOf("/proc/self/cwd"));
  json.Add("root", LinkOf("/proc/self/root"));
  json.Add("program", LinkOf("/proc/self/exe"));
  json.Add("group", std::to_string(getpgrp()));
  json.Add("session", std::to_string(getsid(0)));
  json.Add("nice", std::to_string(getpriority(PRIO_PROCESS, 0)));
  json.Add("scheduler", std::to_string(sched_getscheduler(0)));
  json.Add("io_priority", std::to_string(syscall(SYS_ioprio_get, 1, 0)));
  json.Add("dumpable", std::to_string(prctl(PR_GET_DUMPABLE)));
  json.Add("subreaper_of_us", std::to_string(prctl(PR_GET_PDEATHSIG, 0)));
  json.Add("secure", std::to_string(prctl(PR_GET_SECUREBITS)));
  workload::PrintLine(json.Finish());
}

void Filter(const std::vector<int>& calls, bool are_allowed, std::string_view action, int flags) {
  const uint32_t refused = action == "kill" ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto to_end = static_cast<uint8_t>(calls.size() - i);
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(calls[i]), to_end, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, are_allowed ? refused : SECCOMP_RET_ALLOW));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, are_allowed ? SECCOMP_RET_ALLOW : refused));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  Check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  Check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) == 0, "seccomp");
}

// What a program needs that has everything open: memory, threads that are there, its output.
void FilterStrictly(std::string_view action, int flags) {
  Filter({SYS_read,          SYS_write,        SYS_writev,
          SYS_close,         SYS_fstat,        SYS_newfstatat,
          SYS_lseek,         SYS_mmap,         SYS_munmap,
          SYS_mprotect,      SYS_mremap,       SYS_madvise,
          SYS_brk,           SYS_futex,        SYS_exit,
          SYS_exit_group,    SYS_rt_sigreturn, SYS_rt_sigprocmask,
          SYS_rt_sigaction,  SYS_gettid,       SYS_getpid,
          SYS_tgkill,        SYS_nanosleep,    SYS_clock_nanosleep,
          SYS_clock_gettime, SYS_sched_yield,  SYS_restart_syscall,
          SYS_getrandom,     SYS_poll},
         true, action, flags);
}

void FilterNetwork(std::string_view action) {
  Filter({SYS_socket, SYS_socketpair, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_recvmsg,
          SYS_recvfrom, SYS_bind},
         false, action, 0);
}

void Limit(const std::string& text) {
  const size_t colon = text.find(':');
  Check(colon != std::string::npos, "limit=NAME:N");
  const std::string name = text.substr(0, colon);
  const int resource = name == "as"        ? RLIMIT_AS
                       : name == "nofile"  ? RLIMIT_NOFILE
                       : name == "memlock" ? RLIMIT_MEMLOCK
                                           : RLIMIT_NPROC;
  const rlim_t value = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
  const struct rlimit limit { value, value };
  Check(setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0, "setrlimit");
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

int main(int /*argc*/, char** argv) {
  // Nothing is left in a buffer that a fork or an exec would copy or lose.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  for (char** step = argv + 1; *step != nullptr; ++step) Do(*step, step + 1);
  return 0;
}
