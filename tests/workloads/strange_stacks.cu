// Launches from stacks that an unwinder may stumble over. None may disturb the program.
//   --mode=plain|altstack|coroutine|tiny|jit|jit-no-frame|far|low|smashed|data|plugin|descriptors
//   --launches N --stack-kb K (tiny) --plugin FILE --other-plugin FILE
#include <csignal>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>

#include "gpu.h"

__global__ void strange_kernel() {}

namespace {

uint64_t g_launches = 0;
uint64_t g_launched = 0;

}  // namespace

XPU_FRAME void LaunchStrange() {
  for (uint64_t i = 0; i < g_launches; ++i) {
    XPU_LAUNCH_UNCOUNTED(strange_kernel, dim3(1), dim3(1), nullptr);
    ++g_launched;
  }
}

// Each calls LaunchStrange with a frame whose call frame information or frame pointer is wrong.
extern "C" {
void CallFar();      // says its frame is 1 GiB large
void CallLow();      // says its frame is empty
void CallSmashed();  // says that rbp leads on, and it does not
void CallData();     // says that its return address lies where a number is
}
__asm__(R"(
  .text
  .type CallFar, @function
CallFar:
  .cfi_startproc
  sub $8, %rsp
  .cfi_def_cfa_offset 0x40000000
  call *strange_target(%rip)
  add $8, %rsp
  ret
  .cfi_endproc
  .size CallFar, . - CallFar
  .globl CallFar
  .type CallLow, @function
CallLow:
  .cfi_startproc
  sub $8, %rsp
  .cfi_def_cfa_offset 0
  call *strange_target(%rip)
  add $8, %rsp
  ret
  .cfi_endproc
  .size CallLow, . - CallLow
  .globl CallLow
  .type CallSmashed, @function
CallSmashed:
  .cfi_startproc
  push %rbp
  movabs $0x5a5a5a5a5a5a5a5a, %rbp
  .cfi_def_cfa %rbp, 16
  call *strange_target(%rip)
  pop %rbp
  ret
  .cfi_endproc
  .size CallSmashed, . - CallSmashed
  .globl CallSmashed
  .type CallData, @function
CallData:
  .cfi_startproc
  sub $24, %rsp
  movq $0x1234567, 8(%rsp)
  .cfi_def_cfa_offset 16
  call *strange_target(%rip)
  add $24, %rsp
  ret
  .cfi_endproc
  .size CallData, . - CallData
  .globl CallData
)");
extern "C" {
void (*strange_target)() = &LaunchStrange;
}

void OnSignal(int /*signal*/) { LaunchStrange(); }

XPU_FRAME void LaunchOnAlternateStack() {
  stack_t stack{};
  stack.ss_size = 256 << 10;
  stack.ss_sp =
      mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

XPU_FRAME void LaunchInCoroutine() {
  static ucontext_t outside;
  static ucontext_t inside;
  getcontext(&inside);
  inside.uc_stack.ss_size = 256 << 10;
  inside.uc_stack.ss_sp = std::malloc(inside.uc_stack.ss_size);
  inside.uc_link = &outside;
  makecontext(&inside, &LaunchStrange, 0);
  swapcontext(&outside, &inside);
  std::free(inside.uc_stack.ss_sp);
}

XPU_FRAME void LaunchOnTinyStack(size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const auto run = [](void*) -> void* {
    LaunchStrange();
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, run, nullptr) != 0) std::exit(1);
  pthread_join(thread, nullptr);
}

// push rbp; mov rbp, rsp; call rdi; pop rbp; ret
constexpr uint8_t kWithFrame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
// push rbx; call rdi; pop rbx; ret
constexpr uint8_t kWithoutFrame[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};

template <size_t N>
XPU_FRAME void LaunchFromGeneratedCode(const uint8_t (&code)[N]) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, code, N);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  reinterpret_cast<void (*)(void (*)())>(page)(&LaunchStrange);
}

// Code that comes and goes: what was there before must not be believed. Returns how often one came
// to where another one had been.
XPU_FRAME uint64_t LaunchFromPlugins(const char* first, const char* second) {
  uint64_t reused = 0;
  void* before = nullptr;
  for (int i = 0; i < 100; ++i) {
    void* plugin = dlopen(i % 2 == 0 ? first : second, RTLD_NOW);
    if (plugin == nullptr) std::exit(1);
    void* function = dlsym(plugin, "CallBack");
    if (function == std::exchange(before, function)) ++reused;
    reinterpret_cast<void (*)(void (*)())>(function)(&LaunchStrange);
    dlclose(plugin);
  }
  return reused;
}

// As daemons do: everything is closed, and what is opened gets the lowest numbers.
XPU_FRAME void LaunchBetweenDescriptors(workload::JsonLine* json) {
  LaunchStrange();
  cudaDeviceSynchronize();
  for (int fd = 3; fd < 256; ++fd) close(fd);
  char name[] = "/tmp/xpu-strange-XXXXXX";
  int fds[8];
  fds[0] = mkstemp(name);
  for (int i = 1; i < 8; ++i) {
    fds[i] = open(name, O_RDWR | O_APPEND);
    LaunchStrange();
    if (write(fds[i], "0123456789", 10) != 10) std::exit(1);
  }
  usleep(300'000);
  LaunchStrange();
  struct stat status {};
  fstat(fds[0], &status);
  unlink(name);
  json->BeginArray("descriptors");
  for (int fd : fds) json->AddRaw("", std::to_string(fd));
  json->EndArray();
  json->Add("file_bytes", static_cast<uint64_t>(status.st_size));
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  json->AddBool("signals_free", sigisemptyset(&mask) != 0);
}

int main(int argc, char** argv) {
  const std::string mode = workload::OptionString(argc, argv, "--mode", "plain");
  g_launches = workload::OptionNumber(argc, argv, "--launches", 10);
  workload::JsonLine json;
  json.Add("workload", "strange_stacks");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  if (mode == "plain") LaunchStrange();
  if (mode == "altstack") LaunchOnAlternateStack();
  if (mode == "coroutine") LaunchInCoroutine();
  if (mode == "tiny") {
    LaunchOnTinyStack(workload::OptionNumber(argc, argv, "--stack-kb", 16) << 10);
  }
  if (mode == "jit") LaunchFromGeneratedCode(kWithFrame);
  if (mode == "jit-no-frame") LaunchFromGeneratedCode(kWithoutFrame);
  if (mode == "far") CallFar();
  if (mode == "low") CallLow();
  if (mode == "smashed") CallSmashed();
  if (mode == "data") CallData();
  if (mode == "plugin") {
    json.Add("reused", LaunchFromPlugins(workload::Option(argc, argv, "--plugin"),
                                         workload::Option(argc, argv, "--other-plugin")));
  }
  if (mode == "descriptors") LaunchBetweenDescriptors(&json);
  XPU_CUDA(cudaDeviceSynchronize());
  json.Add("launches", g_launched);
  workload::PrintLine(json.Finish());
  return 0;
}
