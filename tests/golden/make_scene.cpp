// Writes the capture that the golden texts are about, and the program files it names, into a
// folder: a small inference program on one GPU, its helper process, and some of everything that can
// go wrong. Every number is chosen so that it can be followed by hand into the golden texts.
#include <cstdio>
#include <string>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu::test {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 1'000 * kMs;
constexpr uint64_t kPeriod = 10 * kMs;
constexpr uint64_t kClockOffset = 1'700'000'000'000'000'000;  // CUPTI clock - CLOCK_MONOTONIC

constexpr uint32_t kApp = 100;
constexpr uint32_t kWorker = 101;
constexpr uint32_t kHelper = 200;
constexpr uint64_t kAppInstance = 0xa1;
constexpr uint64_t kHelperInstance = 0xb2;

// Where the text of each file is mapped; each maps one page.
constexpr uint64_t kAppText = 0x55550000'1000;
constexpr uint64_t kCudart = 0x7f0000010000;
constexpr uint64_t kCuda = 0x7f0000020000;
constexpr uint64_t kCupti = 0x7f0000030000;
constexpr uint64_t kInject = 0x7f0000040000;
constexpr uint64_t kVdso = 0x7fff00000000;
constexpr uint64_t kKernelText = 0xffffffff81000000;

// Call-back ids.
constexpr uint32_t kLaunchKernel = 211;
constexpr uint32_t kMemcpyAsync = 41;
constexpr uint32_t kMemsetAsync = 51;
constexpr uint32_t kGraphLaunch = 311;
constexpr uint32_t kStreamSynchronize = 131;

constexpr char kSoftmax[] = "_Z7softmaxIfEvPT_i";  // void softmax<float>(float*, int)
constexpr char kMatmul[] = "_Z6matmulPfS_S_";      // matmul(float*, float*, float*)

class Scene {
 public:
  explicit Scene(std::string folder) : folder_(std::move(folder)) {}

  Status Write() {
    WriteFiles();
    AddRecording();
    AddProcesses();
    AddSamples();
    AddGpu();
    AddHelper();
    AddLosses();
    return builder_.WriteCapture(folder_ + "/scene.xpu");
  }

 private:
  void WriteFiles();
  void AddRecording();
  void AddProcesses();
  void AddSamples();
  void AddGpu();
  void AddOperations();
  void AddHelper();
  void AddLosses();

  void MapFile(uint64_t time_ns, uint32_t pid, uint64_t start, const char* name) {
    builder_.Map(time_ns, pid, start, ElfBuilder::kTextBytes, ElfBuilder::kTextOffset,
                 folder_ + "/" + name, std::string("build-id-of-") + name);
  }
  // The stack at the marker under main -> runRequest -> forward, with everything below it.
  StackId LaunchStackOf(uint64_t forward_offset, uint64_t cudart_offset = 0) {
    return builder_.Stack({kAppText + 0x110, kAppText + 0x210, kAppText + 0x300 + forward_offset,
                           kCudart + cudart_offset + 0x10, kCuda + 0x10, kCupti + 0x10,
                           kInject + 0x10, kInject + 0x100});
  }
  static uint64_t Cupti(uint64_t monotonic_ns) { return monotonic_ns + kClockOffset; }

  std::string folder_;
  ModelBuilder builder_;
};

void Scene::WriteFiles() {
  ElfBuilder("build-id-of-app")
      .Symbol("_start", 0x0, 0x40)
      .Symbol("main", 0x100, 0x100)
      .Symbol("_ZN17InferencePipeline10runRequestEv", 0x200, 0x100)
      .Symbol("_ZN16TransformerLayer7forwardEi", 0x300, 0x100)
      .Symbol("tokenize", 0x400, 0x100)
      .WriteTo(folder_ + "/app");
  ElfBuilder("build-id-of-libcudart.so.13")
      .DynamicSymbol("cudaLaunchKernel", 0x0, 0x100)
      .DynamicSymbol("cudaMemcpyAsync", 0x100, 0x100)
      .DynamicSymbol("cudaMemsetAsync", 0x200, 0x100)
      .DynamicSymbol("cudaGraphLaunch", 0x300, 0x100)
      .DynamicSymbol("cudaStreamSynchronize", 0x400, 0x100)
      .WriteTo(folder_ + "/libcudart.so.13");
  // Another build than the one that was recorded.
  ElfBuilder("build-id-of-new-helper").Symbol("work", 0x0, 0x1000).WriteTo(folder_ + "/helper");
  // libcuda, libcupti and our library are not there: their names are enough.
}

void Scene::AddRecording() {
  builder_.events.recording_info.push_back({.start_ns = kStart,
                                            .start_realtime_ns = Cupti(kStart),
                                            .recorder_pid = 99,
                                            .cpu_count = 4,
                                            .recorder_version = builder_.Text("0.1.0"),
                                            .host_name = builder_.Text("gpu-host"),
                                            .kernel_release = builder_.Text("6.18.0"),
                                            .machine = builder_.Text("x86_64"),
                                            .command_line = builder_.Text("./app --requests 3"),
                                            .settings = builder_.Text("-F 100"),
                                            .working_directory = builder_.Text("/src")});
  builder_.Source(kPeriod);
  builder_.events.recording_end.push_back(
      {.time_ns = kStart + 2'500 * kMs, .target_pid = kApp, .wait_status = 3 << 8});
}

void Scene::AddProcesses() {
  using Kind = ProcessEventKind;
  builder_.Process(Kind::kExisting, kStart, kApp, kApp, "xpu-record");
  builder_.Process(Kind::kExec, kStart + kMs, kApp, kApp, "app");
  MapFile(kStart + kMs, kApp, kAppText, "app");
  MapFile(kStart + 2 * kMs, kApp, kCudart, "libcudart.so.13");
  MapFile(kStart + 2 * kMs, kApp, kCuda, "libcuda.so.1");
  MapFile(kStart + 2 * kMs, kApp, kCupti, "libcupti.so.13");
  MapFile(kStart + 2 * kMs, kApp, kInject, "libxpu_inject.so");
  builder_.Map(kStart + kMs, kApp, kVdso, 0x2000, 0, "[vdso]");
  builder_.Process(Kind::kFork, kStart + 5 * kMs, kApp, kWorker, {}, kApp, kApp);
  builder_.Process(Kind::kName, kStart + 6 * kMs, kApp, kWorker, "worker;1");
  builder_.Process(Kind::kFork, kStart + 7 * kMs, kHelper, kHelper, {}, kApp, kWorker);
  builder_.Process(Kind::kExec, kStart + 8 * kMs, kHelper, kHelper, "helper");
  MapFile(kStart + 8 * kMs, kHelper, kAppText, "helper");
  builder_.Process(Kind::kExit, kStart + 2'400 * kMs, kHelper, kHelper);
  builder_.Process(Kind::kExit, kStart + 2'450 * kMs, kApp, kApp);
}

void Scene::AddSamples() {
  builder_.events.kernel_symbols.push_back({.address = kKernelText,
                                            .size_bytes = 0x100,
                                            .name = builder_.Text("do_syscall_64"),
                                            .module = {}});
  const uint64_t at = kStart + 20 * kMs;
  const StackId tokenize = builder_.Stack({kAppText + 0x110, kAppText + 0x450});
  const StackId in_kernel = builder_.Stack({kAppText + 0x110, kAppText + 0x450, kKernelText + 8});
  const StackId clock = builder_.Stack({kAppText + 0x110, kVdso + 0x10});
  const StackId unknown = builder_.Stack({kAppText + 0x110, 0x1234});
  const StackId unnamed = builder_.Stack({kAppText + 0x110, kAppText + 0xf00});
  // The last byte of main returns behind its end, into runRequest.
  const StackId noreturn = builder_.Stack({kAppText + 0x200, kAppText + 0x450});
  builder_.Sample(at, kApp, kApp, tokenize);
  builder_.Sample(at + 10 * kMs, kApp, kApp, tokenize);
  builder_.Sample(at + 20 * kMs, kApp, kApp, in_kernel);
  builder_.Sample(at + 30 * kMs, kApp, kApp, clock);
  builder_.Sample(at + 40 * kMs, kApp, kApp, unknown);
  builder_.Sample(at + 50 * kMs, kApp, kApp, unnamed);
  builder_.Sample(at + 60 * kMs, kApp, kApp, noreturn);
  builder_.Sample(at + 5 * kMs, kApp, kWorker, tokenize);  // not in order of time
  builder_.Sample(at + 500 * kMs, kApp, kWorker, tokenize);
  builder_.Sample(at + 30 * kMs, kHelper, kHelper, builder_.Stack({kAppText + 0x10}));
}

void Scene::AddGpu() {
  builder_.events.gpu_processes.push_back({.time_ns = kStart + 3 * kMs,
                                           .instance = {kAppInstance},
                                           .state = InjectState::kActive,
                                           .pid = kApp,
                                           .namespace_pid = 10,
                                           .cupti_version = 26,
                                           .driver_version = 13000,
                                           .cupti_path = builder_.Text("/cuda/libcupti.so.13"),
                                           .detail = {}});
  builder_.events.devices.push_back({.instance = {kAppInstance},
                                     .device_id = 0,
                                     .name = builder_.Text("NVIDIA H200"),
                                     .uuid = builder_.Text("0123456789abcdef"),
                                     .compute_capability_major = 9,
                                     .compute_capability_minor = 0,
                                     .multiprocessor_count = 132,
                                     .global_memory_bytes = 150'000'000'000});
  builder_.Clock(kAppInstance, kClockOffset,
                 {kStart + 10 * kMs, kStart + 1'010 * kMs, kStart + 2'010 * kMs});
  const auto name = [&](uint32_t id, const char* text) {
    builder_.Callback(kAppInstance, ApiDomain::kRuntime, id, text);
    builder_.Callback(kHelperInstance, ApiDomain::kRuntime, id, text);
  };
  name(kLaunchKernel, "cudaLaunchKernel_v7000");
  name(kMemcpyAsync, "cudaMemcpyAsync_v3020");
  name(kMemsetAsync, "cudaMemsetAsync_v3020");
  name(kGraphLaunch, "cudaGraphLaunch_v10000");
  name(kStreamSynchronize, "cudaStreamSynchronize_v3020");
  AddOperations();
}

void Scene::AddOperations() {
  const uint64_t at = kStart + 100 * kMs;
  uint32_t id = 0;
  // Each call is 5 us long, 100 us after the one before; its thread is 10 or 11 for the program.
  const auto call = [&](uint32_t callback_id, StackId stack, uint32_t tid = kApp) -> uint64_t {
    ++id;
    const uint64_t start = at + id * 100'000;
    builder_.Call(kAppInstance, id, callback_id, start, start + 5'000, tid == kApp ? 10 : 11);
    if (stack) builder_.Launch(kAppInstance, id, start + 500, kApp, tid, stack);
    return start;
  };
  const auto kernel = [&](uint64_t call_start, uint64_t duration, const char* symbol) {
    const uint64_t start = Cupti(call_start + 8'000);
    Kernel& added = builder_.AddKernel(kAppInstance, id, start, start + duration, symbol);
    added.grid_x = 64;
    added.grid_y = added.grid_z = 1;
    added.block_x = 256;
    added.block_y = added.block_z = 1;
    added.registers_per_thread = 32;
    added.dynamic_shared_memory_bytes = 1024;
  };
  const StackId first = LaunchStackOf(0x20);
  const StackId second = LaunchStackOf(0x40);  // another line of the same function

  kernel(call(kLaunchKernel, first), 20'400, kSoftmax);
  kernel(call(kLaunchKernel, second), 30'400, kSoftmax);
  kernel(call(kLaunchKernel, first), 1'000'700, kMatmul);
  kernel(call(kLaunchKernel, first, kWorker), 300, kMatmul);
  call(kLaunchKernel, second);  // its kernel never arrives
  kernel(call(kLaunchKernel, StackId{}), 7'000, kSoftmax);
  kernel(call(kLaunchKernel, first), 0, kSoftmax);  // no valid time
  builder_.events.kernels.back().start_ns = 0;
  builder_.events.kernels.back().end_ns = 0;

  uint64_t start = call(kMemcpyAsync, LaunchStackOf(0x20, 0x100));
  Memcpy& copy = builder_.events.memcpys.emplace_back();
  copy.instance = {kAppInstance};
  copy.record_size_bytes = 96;
  copy.start_ns = Cupti(start + 9'000);
  copy.end_ns = copy.start_ns + 50'000;
  copy.size_bytes = 4'000'000;
  copy.correlation_id = id;
  copy.context_id = 1;
  copy.stream_id = 7;
  copy.copy_kind = 1;
  copy.source_kind = 2;
  copy.destination_kind = 3;

  start = call(kMemsetAsync, LaunchStackOf(0x20, 0x200));
  Memset& set = builder_.events.memsets.emplace_back();
  set.instance = {kAppInstance};
  set.record_size_bytes = 88;
  set.start_ns = Cupti(start + 9'000);
  set.end_ns = set.start_ns + 2'000;
  set.size_bytes = 1'024;
  set.correlation_id = id;
  set.context_id = 1;
  set.stream_id = 7;

  start = call(kGraphLaunch, LaunchStackOf(0x20, 0x300));
  GraphLaunch& graph = builder_.events.graph_launches.emplace_back();
  graph.instance = {kAppInstance};
  graph.record_size_bytes = 64;
  graph.start_ns = Cupti(start + 9'000);
  graph.end_ns = graph.start_ns + 80'000;
  graph.correlation_id = id;
  graph.context_id = 1;
  graph.stream_id = 7;
  graph.graph_id = 5;

  start = call(kStreamSynchronize, LaunchStackOf(0x20, 0x400));
  Synchronization& wait = builder_.events.synchronizations.emplace_back();
  wait.instance = {kAppInstance};
  wait.record_size_bytes = 56;
  wait.start_ns = Cupti(start + 1'000);
  wait.end_ns = wait.start_ns + 3'000;
  wait.type = 3;
  wait.correlation_id = id;
  wait.context_id = 1;
  wait.stream_id = 7;

  call(kLaunchKernel, first);  // refused by CUDA
  builder_.events.api_calls.back().return_value = 700;
  // Launched before the recording began.
  builder_.AddKernel(kAppInstance, 999, Cupti(at), Cupti(at) + 600, kMatmul);
}

// The same correlation ids as in the other process, one clock pair, another offset.
void Scene::AddHelper() {
  const uint64_t at = kStart + 200 * kMs;
  builder_.Clock(kHelperInstance, 5'000, {kStart + 20 * kMs});
  builder_.events.gpu_processes.push_back({.time_ns = kStart + 10 * kMs,
                                           .instance = {kHelperInstance},
                                           .state = InjectState::kFinished,
                                           .pid = kHelper,
                                           .namespace_pid = kHelper,
                                           .cupti_version = 26,
                                           .driver_version = 13000,
                                           .cupti_path = {},
                                           .detail = {}});
  builder_.Call(kHelperInstance, 1, kLaunchKernel, at, at + 4'000, kHelper);
  builder_.Launch(kHelperInstance, 1, at + 100, kHelper, kHelper,
                  builder_.Stack({kAppText + 0x20}));
  builder_.AddKernel(kHelperInstance, 1, at + 10'000 + 5'000, at + 60'000 + 5'000, kMatmul);
}

void Scene::AddLosses() {
  const auto lose = [&](const char* name, uint64_t count, const char* detail) {
    builder_.events.losses.push_back({.time_ns = kStart + 2'000 * kMs,
                                      .name = builder_.Text(name),
                                      .count = count,
                                      .pid = 0,
                                      .instance = {},
                                      .detail = builder_.Text(detail)});
  };
  lose("sample_ring_full", 7, "");
  lose("sample_ring_full", 5, "");
  lose("stack_truncated", 2, "");
  lose("a_loss_of_the_future", 1, "some \"detail\"");
}

}  // namespace
}  // namespace xpu::test

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const xpu::Status status = xpu::test::Scene(argv[1]).Write();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return 1;
}
