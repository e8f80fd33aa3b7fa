#include "tests/unit/report/hostile_captures.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "format/base/text.h"

namespace xpu::test {
namespace {

constexpr uint32_t kPid = 100;
constexpr InstanceId kInstance{7};
constexpr uint64_t kCode = 0x10000;
constexpr uint64_t kKernelCode = 0xffffffff81000000;
constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kStep = 1'000'000;
constexpr size_t kDepth = 2048;  // as deep as a stack may be
constexpr uint32_t kLaunchKernel = 211;

// Puts events until the first one that cannot be written.
class Maker {
 public:
  Maker(CaptureWriter& writer, uint32_t events) : writer_(writer), events_(events) {
    RecordingInfo info;
    info.start_ns = info.start_realtime_ns = kStart;
    info.call_graph = CallGraph::kTables;
    Put(info);
    Put(SampleSource{
        .source = 1, .name = Text("cpu-clock"), .period = 10'000'000, .unit = Text("ns")});
  }

  uint32_t events() const { return events_; }
  StringId Text(std::string_view text) { return writer_.InternString(text); }
  // The same text, and as large as a text may be, without hashing it for each event.
  StringId HugeText() {
    const uint64_t tables = writer_.TablesNumber();
    if (!huge_ || huge_tables_ != tables) {
      huge_ = writer_.InternString(std::string(size_t{1} << 20, 'n'));
      huge_tables_ = writer_.TablesNumber();
    }
    return huge_;
  }
  StackId Stack(std::span<const Frame> innermost_first) {
    return writer_.InternStack(innermost_first);
  }
  template <typename Event>
  void Put(const Event& event) {
    if (status_.ok()) status_ = writer_.Write(event);
  }
  uint64_t Now() { return now_ns_ += kStep; }

  void Process(uint32_t pid = kPid, std::string_view name = "app") {
    Put(ProcessEvent{.time_ns = kStart, .pid = pid, .tid = pid, .name = Text(name)});
  }
  void Map(uint64_t time_ns, uint32_t pid = kPid, std::string_view path = "/nowhere/app") {
    Put(Mapping{.time_ns = time_ns,
                .pid = pid,
                .tid = pid,
                .start_address = kCode,
                .size_bytes = uint64_t{1} << 40,
                .path = Text(path),
                .build_id = {}});
  }
  void Sample(StackId stack, uint32_t pid = kPid, uint32_t tid = kPid) {
    Put(CpuSample{
        .time_ns = Now(), .source = 1, .pid = pid, .tid = tid, .stack = stack, .python_stack = {}});
  }
  Status Finish() {
    Put(RecordingEnd{.time_ns = Now()});
    return std::move(status_);
  }

 private:
  CaptureWriter& writer_;
  const uint32_t events_;
  uint64_t now_ns_ = kStart;
  StringId huge_;
  uint64_t huge_tables_ = 0;
  Status status_ = Ok();
};

std::vector<Frame> UserFrames(size_t count, uint64_t first = 0) {
  std::vector<Frame> frames;
  for (size_t i = 0; i < count; ++i) {
    frames.push_back({FrameKind::kUser, kCode + 16 * (first + i) + 1});
  }
  return frames;
}

Status OneDeepStack(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  maker.Map(kStart);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events; ++i) maker.Sample(maker.Stack(frames));
  return maker.Finish();
}

// What an address was depends on the time: no answer holds for all events.
Status DeepStackOverMovingMappings(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  for (uint64_t i = 0; i < 20; ++i) maker.Map(kStart + i * events / 20 * kStep);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events; ++i) maker.Sample(maker.Stack(frames));
  return maker.Finish();
}

Status ManyMappingsOfOnePlace(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  for (uint64_t i = 0; i < events / 2; ++i) maker.Map(kStart + 2 * i * kStep);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events / 2; ++i) maker.Sample(maker.Stack(frames));
  return maker.Finish();
}

// A process that begot a process, and so on: what the last one runs was mapped by the first.
Status ForksOfForks(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  maker.Map(kStart);
  const uint32_t forks = events / 2;
  for (uint32_t i = 0; i < forks; ++i) {
    maker.Put(ProcessEvent{.time_ns = kStart + i,
                           .kind = ProcessEventKind::kFork,
                           .pid = kPid + i + 1,
                           .tid = kPid + i + 1,
                           .parent_pid = kPid + i,
                           .parent_tid = kPid + i,
                           .name = {}});
  }
  const std::vector<Frame> frames = UserFrames(64);
  for (uint32_t i = 0; i < events - forks; ++i) {
    maker.Sample(maker.Stack(frames), kPid + forks, kPid + forks);
  }
  return maker.Finish();
}

// One chain of callers, and under it ever other functions.
Status ManyLeavesOfADeepStack(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  maker.Map(kStart);
  std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events; ++i) {
    frames.front().address = kCode + 16 * (kDepth + i) + 1;
    maker.Sample(maker.Stack(frames));
  }
  return maker.Finish();
}

Status DeepStackOfManyThreads(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  maker.Map(kStart);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events / 2; ++i) {
    maker.Put(ProcessEvent{.time_ns = kStart,
                           .kind = ProcessEventKind::kName,
                           .pid = kPid,
                           .tid = kPid + i,
                           .name = maker.Text(Format("t{}", i))});
    maker.Sample(maker.Stack(frames), kPid, kPid + i);
  }
  return maker.Finish();
}

Status ManyProcesses(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events / 3; ++i) {
    maker.Process(kPid + i);
    maker.Map(kStart, kPid + i);
    maker.Sample(maker.Stack(frames), kPid + i, kPid + i);
  }
  return maker.Finish();
}

void PutCall(Maker& maker, uint32_t correlation, StackId stack, StackId python = {}) {
  const uint64_t now_ns = maker.Now();
  maker.Put(LaunchStack{.instance = kInstance,
                        .correlation_id = correlation,
                        .domain = ApiDomain::kRuntime,
                        .callback_id = kLaunchKernel,
                        .time_ns = now_ns,
                        .pid = kPid,
                        .tid = kPid,
                        .stack = stack,
                        .python_stack = python});
  maker.Put(ApiCall{.instance = kInstance,
                    .domain = ApiDomain::kRuntime,
                    .callback_id = kLaunchKernel,
                    .correlation_id = correlation,
                    .tid = kPid,
                    .start_ns = now_ns,
                    .end_ns = now_ns + 10});
}

void PutKernel(Maker& maker, uint32_t correlation, StringId name) {
  const uint64_t now_ns = maker.Now();
  maker.Put(Kernel{.instance = kInstance,
                   .start_ns = now_ns,
                   .end_ns = now_ns + 100,
                   .correlation_id = correlation,
                   .name = name,
                   .tail = {}});
}

void PutGpu(Maker& maker) {
  maker.Process();
  maker.Map(kStart);
  maker.Put(GpuProcess{
      .time_ns = kStart, .instance = kInstance, .pid = kPid, .cupti_path = {}, .detail = {}});
  maker.Put(CallbackName{.instance = kInstance,
                         .domain = ApiDomain::kRuntime,
                         .callback_id = kLaunchKernel,
                         .name = maker.Text("cudaLaunchKernel_v7000")});
}

Status LaunchesOfADeepStack(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 1; i <= events / 3; ++i) {
    PutCall(maker, i, maker.Stack(frames));
    PutKernel(maker, i, maker.Text("scale"));
  }
  return maker.Finish();
}

// Kernels of one graph's node, which a deep stack launched and another one captured.
Status NodesOfADeepGraph(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  const std::vector<Frame> frames = UserFrames(kDepth);
  const uint32_t nodes = events / 5;
  for (uint32_t i = 1; i <= nodes; ++i) {
    PutCall(maker, i, maker.Stack(frames));
    maker.Put(GraphNode{.instance = kInstance,
                        .time_ns = kStart + i * kStep,
                        .change = GraphNodeChange::kCreated,
                        .node_id = (uint64_t{1} << 32) + i,
                        .graph_id = 1,
                        .correlation_id = i});
    maker.Put(GraphNode{.instance = kInstance,
                        .time_ns = kStart + i * kStep,
                        .change = GraphNodeChange::kCloned,
                        .node_id = (uint64_t{2} << 32) + i,
                        .original_node_id = (uint64_t{1} << 32) + i,
                        .graph_id = 2});
    const uint64_t now_ns = maker.Now();
    maker.Put(Kernel{.instance = kInstance,
                     .start_ns = now_ns,
                     .end_ns = now_ns + 100,
                     .correlation_id = i,
                     .graph_id = 2,
                     .graph_node_id = (uint64_t{2} << 32) + i,
                     .name = maker.Text("scale"),
                     .tail = {}});
  }
  return maker.Finish();
}

// One node that was updated over and over.
Status UpdatesOfOneNode(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  for (uint32_t i = 1; i <= events / 2; ++i) {
    maker.Put(GraphNode{.instance = kInstance,
                        .time_ns = kStart + i * kStep,
                        .change = GraphNodeChange::kUpdated,
                        .node_id = (uint64_t{1} << 32) + i % 70,
                        .original_node_id = (uint64_t{1} << 32) + (i + 1) % 70,
                        .graph_id = 1});
    const uint64_t now_ns = maker.Now();
    maker.Put(Kernel{.instance = kInstance,
                     .start_ns = now_ns,
                     .end_ns = now_ns + 100,
                     .correlation_id = 1,
                     .graph_id = 1,
                     .graph_node_id = uint64_t{1} << 32,
                     .name = maker.Text("scale"),
                     .tail = {}});
  }
  return maker.Finish();
}

Status OverlappingWork(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  for (uint32_t i = 1; i <= events / 2; ++i) {
    const uint64_t now_ns = maker.Now();
    maker.Put(Kernel{.instance = kInstance,
                     .start_ns = now_ns,
                     .end_ns = now_ns + events * kStep,
                     .correlation_id = i,
                     .stream_id = i % 2,
                     .name = maker.Text(i % 2 == 0 ? "scale" : "add"),
                     .tail = {}});
    maker.Put(Synchronization{.instance = kInstance,
                              .start_ns = now_ns,
                              .end_ns = now_ns + events * kStep,
                              .type = 4,
                              .correlation_id = i,
                              .tail = {}});
  }
  return maker.Finish();
}

Status NestedRanges(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  const auto range = [&](NvtxKind kind, uint32_t i, StringId text) {
    maker.Put(NvtxEvent{.instance = kInstance,
                        .time_ns = maker.Now(),
                        .kind = kind,
                        .tid = kPid,
                        .domain = i % 2,
                        .text = text,
                        .payload_data = {}});
  };
  const uint32_t part = events / 6;
  for (uint32_t i = 0; i < part; ++i) range(NvtxKind::kPush, i, maker.Text("outer"));
  for (uint32_t i = 1; i <= part; ++i) {
    PutCall(maker, i, {});
    PutKernel(maker, i, maker.Text("scale"));
    range(NvtxKind::kPush, i, maker.Text("inner"));
    range(NvtxKind::kPop, i + 1, {});
  }
  return maker.Finish();
}

// Frames of the interpreter on one native stack.
Status DeepPythonStack(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  maker.Map(kStart, kPid, "/nowhere/libpython3.12.so.1.0");
  maker.Put(PythonCode{.code = 1,
                       .name = maker.Text("f"),
                       .path = maker.Text("/app/f.py"),
                       .first_line = 1,
                       .line_table = {},
                       .version = 3 << 8 | 12});
  std::vector<Frame> python;
  for (uint32_t i = 0; i < kDepth; ++i) {
    python.push_back({FrameKind::kPython,
                      PythonFrame{.code = 1, .is_entry = i % 2 == 0, .offset = 2 * i}.Bits()});
  }
  const std::vector<Frame> native = UserFrames(kDepth);
  for (uint32_t i = 0; i < events; ++i) {
    // Ever other offsets of the innermost function, all of the same line.
    python.front().address = PythonFrame{.code = 1, .is_entry = true, .offset = 2 * i}.Bits();
    maker.Put(CpuSample{.time_ns = maker.Now(),
                        .source = 1,
                        .pid = kPid,
                        .tid = kPid,
                        .stack = maker.Stack(native),
                        .stack_flags = kStackComplete,
                        .python_stack = maker.Stack(python)});
  }
  return maker.Finish();
}

// One text of a compiler's comments, as lines of ever other places of a file.
Status FusedCallsOfOneText(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  std::string text;
  while (text.size() < size_t{48} << 10) text += " # Source Nodes: [a], [b]\n k.run()\n";
  constexpr std::string_view kPath = "/app/f.py";
  maker.Put(PythonCode{.code = 1,
                       .name = maker.Text("f"),
                       .path = maker.Text(kPath),
                       .first_line = 2,
                       .line_table = {},
                       .version = 3 << 8 | 12});
  for (uint32_t i = 0; i < events / 4; ++i) {
    maker.Put(SourceText{.path = maker.Text(kPath), .first_line = i, .text = maker.Text(text)});
    std::vector<Frame> python(kDepth, {FrameKind::kPython, PythonFrame{.code = 1}.Bits()});
    python.front().address = PythonFrame{.code = 1, .offset = 2 * i}.Bits();
    PutCall(maker, i + 1, maker.Stack(UserFrames(1)), maker.Stack(python));
  }
  return maker.Finish();
}

// One name of a mebibyte, of very many pieces of code.
Status HugeName(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  const uint32_t part = events / 8;
  for (uint32_t i = 0; i < part; ++i) {
    const uint64_t address = kKernelCode + uint64_t{64} * i;
    maker.Put(
        KernelSymbol{.address = address, .size_bytes = 64, .name = maker.HugeText(), .module = {}});
    maker.Put(GeneratedSymbol{.pid = kPid + 1,
                              .address = kCode + uint64_t{64} * i,
                              .size_bytes = 64,
                              .name = maker.HugeText()});
    maker.Put(PythonCode{.code = i + 1,
                         .name = maker.HugeText(),
                         .path = maker.HugeText(),
                         .first_line = i,
                         .line_table = {},
                         .version = 3 << 8 | 12});
    maker.Put(ProcessEvent{.time_ns = kStart,
                           .kind = ProcessEventKind::kName,
                           .pid = kPid + 1,
                           .tid = kPid + i,
                           .name = maker.HugeText()});
    // The writer remembers the names of threads that live.
    maker.Put(ProcessEvent{.time_ns = kStart,
                           .kind = ProcessEventKind::kExit,
                           .pid = kPid + 1,
                           .tid = kPid + i,
                           .name = {}});
    const std::array<Frame, 2> frames = {Frame{FrameKind::kKernel, address + 1},
                                         Frame{FrameKind::kUser, kCode + uint64_t{64} * i + 2}};
    const std::array<Frame, 1> python = {Frame{
        FrameKind::kPython, PythonFrame{.code = i + 1, .is_entry = true, .offset = 0}.Bits()}};
    const uint64_t now_ns = maker.Now();
    maker.Put(CpuSample{.time_ns = now_ns,
                        .source = 1,
                        .pid = kPid + 1,
                        .tid = kPid + i,
                        .stack = maker.Stack(frames),
                        .python_stack = maker.Stack(python)});
    maker.Put(NvtxEvent{.instance = kInstance,
                        .time_ns = now_ns,
                        .kind = NvtxKind::kPush,
                        .tid = kPid,
                        .text = maker.HugeText(),
                        .payload_data = {}});
    PutKernel(maker, i, maker.HugeText());
    maker.Put(GpuProcess{.time_ns = kStart,
                         .instance = InstanceId{100 + i % 1000},
                         .pid = kPid + i,
                         .cupti_path = {},
                         .detail = maker.HugeText()});
  }
  return maker.Finish();
}

Status ManyNames(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  for (uint32_t i = 1; i <= events; ++i) PutKernel(maker, i, maker.Text(Format("k{}", i)));
  return maker.Finish();
}

// Nested as no compiler nests them.
Status NameOfBrackets(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  const std::string name = std::string(size_t{1} << 19, '<') + std::string(size_t{1} << 19, '>');
  for (uint32_t i = 1; i <= events / 10'000; ++i) PutKernel(maker, i, maker.Text(name));
  return maker.Finish();
}

Status ManyClockPairs(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  for (uint32_t i = 1; i <= events / 2; ++i) {
    const uint64_t now_ns = maker.Now();
    maker.Put(ClockPair{.instance = kInstance,
                        .before_ns = now_ns,
                        .clock_ns = now_ns + (i % 1000 == 0 ? 10'000'000'000 : 0),
                        .after_ns = now_ns});
    PutKernel(maker, i, maker.Text("scale"));
  }
  return maker.Finish();
}

Status ManyInstances(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  for (uint32_t i = 1; i <= events / 3; ++i) {
    const InstanceId instance{1000 + i};
    const uint64_t now_ns = maker.Now();
    maker.Put(GpuProcess{.time_ns = now_ns,
                         .instance = instance,
                         .pid = kPid + i % 3,
                         .cupti_path = {},
                         .detail = {}});
    maker.Put(Kernel{.instance = instance,
                     .start_ns = now_ns,
                     .end_ns = now_ns + 100,
                     .correlation_id = 1,
                     .device_id = i,
                     .stream_id = i,
                     .name = maker.Text("scale"),
                     .tail = {}});
    maker.Put(NvtxEvent{.instance = instance,
                        .time_ns = now_ns,
                        .kind = NvtxKind::kPush,
                        .tid = kPid,
                        .text = maker.Text("range"),
                        .payload_data = {}});
  }
  return maker.Finish();
}

Status HitsWithADeepStack(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  maker.Map(kStart);
  maker.Put(Probe{.probe = 1, .function = maker.Text("malloc"), .path = maker.Text("/libc")});
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events; ++i) {
    maker.Put(ProbeHit{.time_ns = maker.Now(),
                       .probe = 1,
                       .pid = kPid,
                       .tid = kPid,
                       .stack = maker.Stack(frames),
                       .python_stack = {}});
  }
  return maker.Finish();
}

// Of one thread, all at once, each for the lock of the one before, while the GPU is idle.
Status OverlappingWaits(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  const std::vector<Frame> frames = UserFrames(kDepth);
  for (uint32_t i = 0; i < events / 4; ++i) {
    OffCpuWait wait;
    wait.start_ns = kStart + i;
    wait.end_ns = ~uint64_t{0} - i;
    wait.ready_ns = kStart + 2 * uint64_t{i};
    wait.pid = kPid;
    wait.tid = i % 2 == 0 ? kPid : kPid + i;
    wait.state = static_cast<OffCpuState>(i % 7);
    wait.system_call = i % 3 == 0 ? 202 : static_cast<int32_t>(i);
    wait.argument = i;
    wait.is_open = true;
    wait.lock_holder = kPid + i - 1;
    wait.waker = static_cast<OffCpuWaker>(i % 4);
    wait.waker_pid = kPid;
    wait.waker_tid = kPid + i;
    wait.waker_name = maker.Text("waker");
    wait.stack = maker.Stack(frames);
    wait.waker_stack = wait.stack;
    maker.Put(wait);
    maker.Put(OffCpuSum{.time_ns = kStart,
                        .pid = kPid,
                        .tid = kPid + i,
                        .state = wait.state,
                        .count = 1,
                        .duration = ~uint64_t{0},
                        .ready_duration = ~uint64_t{0} - i});
    PutKernel(maker, i, maker.Text("scale"));
  }
  return maker.Finish();
}

Status ManyLosses(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  maker.Process();
  for (uint32_t i = 0; i < events; ++i) {
    maker.Put(Loss{.time_ns = kStart,
                   .name = maker.Text("samples_lost"),
                   .count = 1,
                   .instance = {},
                   .detail = maker.HugeText()});
  }
  return maker.Finish();
}

// Of ranks that call no two of their collectives at the same time, with payloads whose schema has
// no end.
Status EndlessCollectives(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  constexpr uint32_t kRanks = 2;
  const uint32_t part = events / 8;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    GpuProcess gpu{};
    gpu.instance = InstanceId{kInstance.value + rank};
    gpu.pid = gpu.namespace_pid = kPid + rank;
    maker.Put(gpu);
    RankInfo info{};
    info.instance = gpu.instance;
    info.pid = gpu.pid;
    info.rank = rank == 0 ? -1 : 2'000'000'000;
    maker.Put(info);
    ContainerInfo container{};
    container.time_ns = rank;
    container.pid = info.pid;
    container.id = maker.Text(rank % 2 == 0 ? "c" : std::to_string(rank));
    container.pod_name = container.name = maker.Text("a\n" + std::string(part % 1000, '/'));
    maker.Put(container);
    for (uint32_t i = 0; i < part; ++i) {
      NvtxSchemaEntry entry{};
      entry.instance = gpu.instance;
      entry.schema = 7;
      entry.entry = i;
      entry.name = maker.Text(i % 2 == 0 ? "communicator" : "bytes");
      entry.type = i % 3 == 2 ? 7 : 18;
      entry.flags = i % 5 == 4 ? 1 << 4 : 0;
      entry.array_length = ~uint64_t{0};
      entry.offset = i % 7 == 6 ? ~uint64_t{0} : 8 * (i % 2);
      maker.Put(entry);
    }
    const uint32_t calls = rank == 0 ? part : part / 2;
    for (uint32_t i = 0; i < calls; ++i) {
      NvtxEvent event{};
      event.instance = gpu.instance;
      event.time_ns = maker.Now();
      event.kind = NvtxKind::kPush;
      event.tid = gpu.pid;
      event.text = maker.Text("ncclAllReduce");
      event.payload_type = NvtxPayload::kExtended;
      event.payload_schema = 7;
      event.payload_data = maker.Text("communicatorbytes");
      maker.Put(event);
      Kernel kernel{};
      kernel.instance = gpu.instance;
      kernel.start_ns = kStart;
      kernel.end_ns = ~uint64_t{0} - i;
      kernel.name = maker.Text("ncclDevKernel_AllReduce");
      maker.Put(kernel);
    }
  }
  return maker.Finish();
}

Status SwitchedOverAndOver(CaptureWriter& writer, uint32_t events) {
  Maker maker(writer, events);
  PutGpu(maker);
  for (uint32_t i = 0; i < events / 2; ++i) {
    maker.Put(
        RecordingSwitch{.time_ns = maker.Now(), .is_on = i % 2 == 1, .cause = maker.HugeText()});
    PutKernel(maker, i, maker.Text("scale"));
  }
  return maker.Finish();
}

constexpr HostileCapture kCaptures[] = {
    {"one_deep_stack", OneDeepStack},
    {"deep_stack_over_moving_mappings", DeepStackOverMovingMappings},
    {"many_mappings_of_one_place", ManyMappingsOfOnePlace},
    {"forks_of_forks", ForksOfForks},
    {"many_leaves_of_a_deep_stack", ManyLeavesOfADeepStack},
    {"deep_stack_of_many_threads", DeepStackOfManyThreads},
    {"many_processes", ManyProcesses},
    {"launches_of_a_deep_stack", LaunchesOfADeepStack},
    {"nodes_of_a_deep_graph", NodesOfADeepGraph},
    {"updates_of_one_node", UpdatesOfOneNode},
    {"overlapping_work", OverlappingWork},
    {"nested_ranges", NestedRanges},
    {"deep_python_stack", DeepPythonStack},
    {"fused_calls_of_one_text", FusedCallsOfOneText},
    {"huge_name", HugeName},
    {"many_names", ManyNames},
    {"name_of_brackets", NameOfBrackets},
    {"many_clock_pairs", ManyClockPairs},
    {"many_instances", ManyInstances},
    {"hits_with_a_deep_stack", HitsWithADeepStack},
    {"overlapping_waits", OverlappingWaits},
    {"many_losses", ManyLosses},
    {"switched_over_and_over", SwitchedOverAndOver},
    {"endless_collectives", EndlessCollectives},
};

}  // namespace

std::span<const HostileCapture> HostileCaptures() { return kCaptures; }

}  // namespace xpu::test
