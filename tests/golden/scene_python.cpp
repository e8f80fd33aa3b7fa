#include "tests/golden/scene_python.h"

#include <vector>

#include "tests/golden/scene.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu::test {
namespace {

constexpr uint32_t kProgram = 300;
constexpr uint32_t kAutograd = 301;
constexpr uint64_t kInstance = 0xc3;

// Where the text of each file is mapped.
constexpr uint64_t kLibc = 0x7f0000100000;
constexpr uint64_t kPython = 0x7f0000110000;
constexpr uint64_t kTorch = 0x7f0000120000;
constexpr uint64_t kRuntime = 0x7f0000130000;

// Functions in them.
constexpr uint64_t kStartMain = kLibc + 0x10;
constexpr uint64_t kStartThread = kLibc + 0x110;
constexpr uint64_t kRunMain = kPython + 0x10;
constexpr uint64_t kLoop = kPython + 0x110;
constexpr uint64_t kLoopEntry = kPython + 0x100;
constexpr uint64_t kCall = kPython + 0x210;
constexpr uint64_t kSort = kPython + 0x310;
constexpr uint64_t kAddmm = kTorch + 0x10;
constexpr uint64_t kEngine = kTorch + 0x110;
constexpr uint64_t kLaunch = kRuntime + 0x10;

// Code objects.
constexpr PythonFrame kModule{.code = 1, .is_entry = true, .offset = 2};
constexpr PythonFrame kMain{.code = 2, .is_entry = false, .offset = 2};
constexpr PythonFrame kForward{.code = 3, .is_entry = false, .offset = 2};
constexpr PythonFrame kForwardByC{.code = 3, .is_entry = true, .offset = 2};
constexpr PythonFrame kHook{.code = 4, .is_entry = true, .offset = 0};
constexpr PythonFrame kInit{.code = 5, .is_entry = false, .offset = 2};

constexpr PythonFrame Gap(PythonGap gap) {
  return {.code = 0, .is_entry = false, .offset = static_cast<uint32_t>(gap)};
}

}  // namespace

void PythonScene::WriteFiles() {
  ElfBuilder("build-id-of-libc")
      .Symbol("__libc_start_main", 0x0, 0x100)
      .Symbol("start_thread", 0x100, 0x100)
      .WriteTo(directory_ + "/libc.so.6");
  ElfBuilder("build-id-of-python")
      .Symbol("Py_RunMain", 0x0, 0x100)
      .Symbol("_PyEval_EvalFrameDefault", 0x100, 0x100)
      .Symbol("PyObject_Vectorcall", 0x200, 0x100)
      .Symbol("list_sort", 0x300, 0x100)
      .WriteTo(directory_ + "/python3.12");
  ElfBuilder("build-id-of-torch")
      .Symbol("_ZN2at6native5addmmEv", 0x0, 0x100)
      .Symbol("_ZN5torch8autograd6Engine4evalEv", 0x100, 0x100)
      .WriteTo(directory_ + "/libtorch.so");
}

void PythonScene::AddRecording() {
  RecordingInfo& info = builder_.events.recording_info.emplace_back();
  info.start_ns = kStart;
  info.start_realtime_ns = kStart + kClockOffset;
  info.recorder_pid = 99;
  info.cpu_count = 4;
  info.command_line = builder_.Text("python3 train.py");
  info.launch_stacks = LaunchStackSource::kInProcess;
  info.call_graph = CallGraph::kTables;
  builder_.Source(kPeriod);
  builder_.End(kStart + 1'000 * kMs);
  builder_.Process(ProcessEventKind::kExec, kStart, kProgram, kProgram, "python3");
  builder_.Process(ProcessEventKind::kFork, kStart, kProgram, kAutograd, {}, kProgram, kProgram);
  builder_.Process(ProcessEventKind::kName, kStart, kProgram, kAutograd, "pt_autograd_0");
  const std::pair<uint64_t, const char*> files[] = {
      {kLibc, "libc.so.6"}, {kPython, "python3.12"}, {kTorch, "libtorch.so"}};
  for (const auto& [at, name] : files) {
    builder_.Map(kStart, kProgram, at, ElfBuilder::kTextBytes, ElfBuilder::kTextOffset,
                 directory_ + "/" + name);
  }
  builder_.Map(kStart, kProgram, kRuntime, 0x1000, 0, "/cuda/libcudart.so.12");
  builder_.Clock(kInstance, kClockOffset, {kStart + kMs, kStart + 900 * kMs});
  builder_.Callback(kInstance, ApiDomain::kRuntime, kLaunchKernel, "cudaLaunchKernel_v7000");
}

// The instruction at 0 is on the first line, the one at 2 on the fourth.
void PythonScene::AddCode(uint32_t code, const char* name, const char* path, uint32_t first_line) {
  builder_.events.python_codes.push_back(
      {.code = code,
       .name = builder_.Text(name),
       .path = builder_.Text(path),
       .first_line = first_line,
       .line_table = builder_.Text(std::string_view("\xe8\0\xe8\6", 4)),
       .version = 3 << 8 | 12});
}

void PythonScene::AddCodes() {
  AddCode(kModule.code, "<module>", "/src/train.py", 1);
  AddCode(kMain.code, "main", "/src/train.py", 20);
  AddCode(kForward.code, "Linear.forward", "/lib/torch/nn/modules/linear.py", 114);
  AddCode(kHook.code, "hook.<locals>.scale", "/src/train.py", 8);
  AddCode(kInit.code, "no_grad", "/lib/torch/__init__.py", 50);
}

StackId PythonScene::Native(std::initializer_list<uint64_t> behind) {
  std::vector<uint64_t> addresses = {kStartMain, kRunMain, kLoop};
  addresses.insert(addresses.end(), behind);
  return builder_.Stack(addresses);
}

void PythonScene::AddSample(uint32_t tid, StackId native, StackId python, uint8_t flags) {
  time_ns_ += kPeriod;
  CpuSample& sample = builder_.Sample(kStart + time_ns_, kProgram, tid, native);
  sample.stack_flags = flags;
  sample.python_stack = python;
}

void PythonScene::AddSamples() {
  constexpr uint8_t kWhole = kStackTables | kStackComplete;
  // In Python, in a builtin function, in an extension, on the way into a function.
  AddSample(kProgram, Native({}), builder_.PythonStack({kModule, kMain}), kWhole);
  AddSample(kProgram, Native({kCall, kSort}), builder_.PythonStack({kModule, kMain, kInit}),
            kWhole);
  AddSample(kProgram, Native({kCall, kAddmm}), builder_.PythonStack({kModule, kMain, kForward}),
            kWhole);
  AddSample(kProgram, Native({kCall, kLoopEntry}), builder_.PythonStack({kModule, kMain}), kWhole);
  // One native frame is missing; the outermost functions are; their names are.
  AddSample(kProgram, Native({kCall, kAddmm}), builder_.PythonStack({kModule, kMain, kForwardByC}),
            kWhole);
  AddSample(kProgram, builder_.Stack({kAddmm, kLoop, kAddmm}),
            builder_.PythonStack({Gap(PythonGap::kDepth), kForwardByC}),
            kStackTables | kStackTruncated);
  AddSample(kProgram, Native({}),
            builder_.PythonStack({kModule, Gap(PythonGap::kCodeMissing), {.code = 99}}), kWhole);
  // Code that no Python called, and code that calls Python.
  AddSample(kAutograd, builder_.Stack({kStartThread, kEngine}), {}, kWhole);
  AddSample(kAutograd, builder_.Stack({kStartThread, kEngine, kCall, kLoop, kCall, kAddmm}),
            builder_.PythonStack({kHook}), kWhole);
}

void PythonScene::AddLaunch(uint32_t id, uint32_t tid, StackId native, StackId python) {
  const uint64_t start = kStart + 500 * kMs + id * kMs;
  builder_.Call(kInstance, id, kLaunchKernel, start, start + 5'000, tid);
  LaunchStack& launch = builder_.Launch(kInstance, id, start, kProgram, tid, native);
  launch.stack_flags = kStackTables | kStackComplete | kStackInProcess;
  launch.python_stack = python;
  builder_.AddKernel(kInstance, id, start + kClockOffset + 10'000, start + kClockOffset + 30'000,
                     "gemm");
}

void PythonScene::AddLaunches() {
  AddLaunch(1, kProgram, Native({kCall, kAddmm, kLaunch}),
            builder_.PythonStack({kModule, kMain, kForward}));
  AddLaunch(2, kProgram, Native({kCall, kAddmm, kCall, kLoop, kLaunch}),
            builder_.PythonStack({kModule, kMain, kForward, kHook}));
  AddLaunch(3, kAutograd, builder_.Stack({kStartThread, kEngine, kAddmm, kLaunch}), {});
}

}  // namespace xpu::test
