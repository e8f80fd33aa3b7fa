// Writes the captures of scene.h and scene_python.h and the program files they name into a
// directory.
#include <cstdio>

#include "tests/golden/scene.h"
#include "tests/golden/scene_python.h"

namespace xpu::test {

void Scene::WriteFiles() {
  ElfBuilder("build-id-of-app")
      .Symbol("_start", 0x0, 0x40)
      .Symbol("main", 0x100, 0x100)
      .Symbol("_ZN17InferencePipeline10runRequestEv", 0x200, 0x100)
      .Symbol("_ZN16TransformerLayer7forwardEi", 0x300, 0x100)
      .Symbol("tokenize", 0x400, 0x100)
      .WriteTo(directory_ + "/app");
  ElfBuilder("build-id-of-libcudart.so.13")
      .DynamicSymbol("cudaLaunchKernel", 0x0, 0x100)
      .DynamicSymbol("cudaMemcpyAsync", 0x100, 0x100)
      .DynamicSymbol("cudaMemsetAsync", 0x200, 0x100)
      .DynamicSymbol("cudaGraphLaunch", 0x300, 0x100)
      .DynamicSymbol("cudaStreamSynchronize", 0x400, 0x100)
      .WriteTo(directory_ + "/libcudart.so.13");
  // Another build than the one that was recorded.
  ElfBuilder("build-id-of-new-helper").Symbol("work", 0x0, 0x1000).WriteTo(directory_ + "/helper");
  // libcuda, libcupti and our library are not there: their names are enough.
}

void Scene::AddRecording() {
  builder_.events.recording_info.push_back(
      {.start_ns = kStart,
       .start_realtime_ns = Cupti(kStart),
       .recorder_pid = 99,
       .cpu_count = 4,
       .recorder_version = builder_.Text("0.1.0"),
       .host_name = builder_.Text("gpu-host"),
       .kernel_release = builder_.Text("6.18.0"),
       .machine = builder_.Text("x86_64"),
       .command_line = builder_.Text("./app --requests 3"),
       .settings = builder_.Text("-F 100 --label commit=1a2b3c"),
       .working_directory = builder_.Text("/src"),
       .launch_stacks = LaunchStackSource::kMarker,
       .graph_trace = GraphTrace::kNode,
       .call_graph = CallGraph::kTables,
       .symbols = SymbolDetail::kNames,
       .boot_id = {}});
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
  MapFile(kStart + 3 * kMs, kApp, kPlugin, "libplugin.so");
  builder_.Map(kStart + 4 * kMs, kApp, kGenerated, 0x1000, 0, "//anon");
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
  // The last byte of main returns after its end, into runRequest.
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
  // Code that the capture itself has names of: of a file that is not here, and of none.
  builder_.Sample(at + 510 * kMs, kApp, kWorker,
                  builder_.Stack({kAppText + 0x110, kPlugin + 0x20, kGenerated + 0x8}));
}

// A plugin in Rust whose symbols are in the capture, in two parts, and generated code.
void Scene::AddSymbols() {
  const std::string image = ElfBuilder("build-id-of-libplugin.so")
                                .Symbol("_RNvNtC6plugin5rules5apply", 0x0, 0x80)
                                .Build();
  const std::string_view bytes = image;
  for (uint32_t part = 0; part < 2; ++part) {
    SymbolSlice slice;
    slice.path = builder_.Text(directory_ + "/libplugin.so");
    slice.build_id = builder_.Text("build-id-of-libplugin.so");
    slice.detail = SymbolDetail::kNames;
    slice.part = part;
    slice.part_count = 2;
    slice.bytes = builder_.Text(part == 0 ? bytes.substr(0, 100) : bytes.substr(100));
    builder_.events.symbol_slices.push_back(slice);
  }
  builder_.events.generated_symbols.push_back({.time_ns = 0,
                                               .pid = kApp,
                                               .address = kGenerated,
                                               .size_bytes = 0x40,
                                               .name = builder_.Text("py::rule:rules.py")});
}

// By tables, to their end but for the two of the loss stack_truncated and one in generated code.
void Scene::MarkStacks() {
  for (CpuSample& sample : builder_.events.cpu_samples) {
    sample.stack_flags = kStackTables | kStackComplete;
  }
  for (LaunchStack& launch : builder_.events.launch_stacks) {
    launch.stack_flags = kStackTables | kStackComplete;
  }
  builder_.events.cpu_samples[0].stack_flags = kStackTables | kStackTruncated;
  builder_.events.cpu_samples[1].stack_flags = kStackTables | kStackTruncated;
  builder_.events.cpu_samples[4].stack_flags =
      kStackTables | kStackFramePointers | kStackTableNotReady;
  builder_.events.cpu_samples[5].stack_flags = kStackTables | kStackFramePointers | kStackComplete;
}

void Scene::AddLosses() {
  const auto lose = [&](const char* name, uint64_t count, const char* detail) {
    builder_.Lose(name, count, detail).time_ns = kStart + 2'000 * kMs;
  };
  lose("sample_ring_full", 7, "");
  lose("sample_ring_full", 5, "");
  lose("stack_truncated", 2, "");
  lose("a_loss_of_the_future", 1, "some \"detail\"");
}

}  // namespace xpu::test

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  xpu::Status status = xpu::test::Scene(argv[1]).Write();
  if (status.ok()) status = xpu::test::PythonScene(argv[1]).Write();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return 1;
}
