// Changes where its code is, then runs it: three quarters of the CPU time in ThreeParts -> Burn,
// the rest in OnePart -> Burn.
//   --how nothing
//         copy       to anonymous memory at the same place, which is then made read-only
//         writable   the same, and it stays writable
//         shared     to shared memory at the same place (/dev/zero)
//         replace    a copy elsewhere is moved there by mremap
//         thread     it stays, and the first thread ends: another one runs it
//         process    it stays, and runs in a process that shares the memory and is no thread
//         mapped     Burn is run where such a process has mapped the program's file once more
//   Generated code at the place of a library that was unloaded (libresolv.so.2):
//         library    and nothing else there
//         mixed      in 11 bytes of a copy of the library
//         inside     and the library stays loaded; only one of its pages is replaced
//   --say map        the generated code is named JitAtLibrary in /tmp/perf-PID.map
//   --ms M           CPU time
//   --wait S         seconds asleep between the change and the rest, after a line of output
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "puppet.h"

namespace {

constexpr uintptr_t kPage = 4096;
constexpr long kLoops = 10000;

XPU_FRAME long Burn(long loops) {
  volatile long x = 1;
  for (long i = 0; i < loops; ++i) x = x * 3 + i;
  return x;
}
XPU_FRAME long OnePart(long loops) { return Burn(loops) + 1; }
XPU_FRAME long ThreeParts(long loops) { return Burn(3 * loops) + 2; }

XPU_FRAME long Work(uint64_t milliseconds) {
  long sum = 0;
  const uint64_t begin = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  while (workload::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin < milliseconds * 1'000'000) {
    for (int i = 0; i < 20; ++i) sum += OnePart(kLoops) + ThreeParts(kLoops);
  }
  return sum;
}

struct Range {
  char* begin = nullptr;
  char* end = nullptr;
  unsigned long file_offset = 0;
  size_t size() const { return static_cast<size_t>(end - begin); }
};

Range CodeAround(const void* address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  Range found;
  char line[512], access[8];
  unsigned long begin = 0, end = 0, offset = 0;
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    const auto wanted = reinterpret_cast<unsigned long>(address);
    if (std::sscanf(line, "%lx-%lx %7s %lx", &begin, &end, access, &offset) == 4 &&
        begin <= wanted && wanted < end) {
      found = {reinterpret_cast<char*>(begin), reinterpret_cast<char*>(end), offset};
    }
  }
  std::fclose(maps);
  return found;
}

// In pages of their own, which stay.
#define XPU_STAYS __attribute__((section(".stays"), noinline, aligned(4096)))

XPU_STAYS long SystemCall(long number, long a, long b, long c, long d, long e, long f) {
  long result = 0;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

XPU_STAYS void CopyOver(Range code, const char* copy, long flags, bool stays_writable) {
  const auto at = reinterpret_cast<long>(code.begin);
  const long size = code.end - code.begin;
  SystemCall(SYS_mmap, at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_FIXED | MAP_ANONYMOUS | flags, -1, 0);
  for (long i = 0; i < size; ++i) static_cast<volatile char*>(code.begin)[i] = copy[i];
  if (!stays_writable) SystemCall(SYS_mprotect, at, size, PROT_READ | PROT_EXEC, 0, 0, 0);
}

// Whole pages around Burn, without those that stay.
Range OwnCode() {
  Range code = CodeAround(reinterpret_cast<const void*>(&Burn));
  auto* const stays = reinterpret_cast<char*>(&SystemCall);
  if (reinterpret_cast<char*>(&Burn) < stays) code.end = stays;
  return code;
}

void Move(const std::string& how) {
  const Range code = OwnCode();
  auto* copy = static_cast<char*>(
      mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memcpy(copy, code.begin, code.size());
  if (how == "replace") {
    mprotect(copy, code.size(), PROT_READ | PROT_EXEC);
    mremap(copy, code.size(), code.size(), MREMAP_MAYMOVE | MREMAP_FIXED, code.begin);
  } else {
    CopyOver(code, copy, how == "shared" ? MAP_SHARED : MAP_PRIVATE, how == "writable");
  }
}

// push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret
constexpr unsigned char kLeaf[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
                                   0xcf, 0x75, 0xfb, 0x5d, 0xc3};
using Leaf = void (*)(long);

Leaf GenerateAtLibrary(const std::string& how, bool named) {
  void* library = dlopen("libresolv.so.2", RTLD_NOW);
  Range code = CodeAround(dlsym(library, "ns_initparse"));
  std::string copy(code.begin, code.size());
  char* const leaf = code.begin + 2 * kPage;
  if (how == "inside") {
    code = {leaf, leaf + kPage};
  } else {
    dlclose(library);
  }
  mmap(code.begin, code.size(), PROT_READ | PROT_WRITE | PROT_EXEC,
       MAP_PRIVATE | MAP_ANONYMOUS | (how == "inside" ? MAP_FIXED : MAP_FIXED_NOREPLACE), -1, 0);
  if (how == "mixed") {
    std::memcpy(code.begin, copy.data(), copy.size());
  }
  std::memcpy(leaf, kLeaf, sizeof(kLeaf));
  if (named) {
    std::FILE* map = std::fopen(("/tmp/perf-" + std::to_string(getpid()) + ".map").c_str(), "w");
    std::fprintf(map, "%lx %zx JitAtLibrary\n", reinterpret_cast<unsigned long>(leaf),
                 sizeof(kLeaf));
    std::fclose(map);
  }
  mprotect(code.begin, code.size(), PROT_READ | PROT_EXEC);
  return reinterpret_cast<Leaf>(leaf);
}

int RunInOtherProcess(int (*function)(void*), void* argument) {
  constexpr size_t kStackBytes = size_t{1} << 20;
  static char stack[kStackBytes];
  const pid_t child = clone(function, stack + kStackBytes, CLONE_VM | SIGCHLD, argument);
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

Leaf MapInOtherProcess() {
  static Range code;
  static char* mapped = nullptr;
  code = CodeAround(reinterpret_cast<const void*>(&Burn));
  RunInOtherProcess(
      [](void*) {
        const int file = open("/proc/self/exe", O_RDONLY);
        mapped = static_cast<char*>(mmap(nullptr, code.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE,
                                         file, static_cast<off_t>(code.file_offset)));
        usleep(100'000);  // so that it is no vfork
        return 0;
      },
      nullptr);
  return reinterpret_cast<Leaf>(mapped + (reinterpret_cast<char*>(&Burn) - code.begin));
}

XPU_FRAME void RunGenerated(Leaf leaf, uint64_t milliseconds) {
  const uint64_t begin = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  while (workload::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin < milliseconds * 1'000'000) {
    leaf(1'000'000);
  }
}

void Wait(uint64_t seconds) {
  std::printf("%d\n", getpid());
  std::fflush(stdout);
  if (seconds != 0) sleep(static_cast<unsigned>(seconds));
}

struct Task {
  uint64_t ms;
  uint64_t wait_s;
};

int Run(void* argument) {
  const Task task = *static_cast<Task*>(argument);
  Wait(task.wait_s);
  return Work(task.ms) == 12345 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  static Task task = {workload::OptionNumber(argc, argv, "--ms", 300),
                      workload::OptionNumber(argc, argv, "--wait", 0)};
  const std::string how = workload::OptionString(argc, argv, "--how", "nothing");
  if (how == "library" || how == "mixed" || how == "inside") {
    const bool named = workload::OptionString(argc, argv, "--say", "nothing") == std::string("map");
    const Leaf leaf = GenerateAtLibrary(how, named);
    Wait(task.wait_s);
    RunGenerated(leaf, task.ms);
    return 0;
  }
  if (how == "thread") {
    std::thread([] { std::_Exit(Run(&task)); }).detach();
    pthread_exit(nullptr);
  }
  if (how == "process") {
    return RunInOtherProcess(&Run, &task);
  }
  if (how == "mapped") {
    RunGenerated(MapInOtherProcess(), task.ms);
    return 0;
  }
  if (how != "nothing") Move(how);
  return Run(&task);
}
