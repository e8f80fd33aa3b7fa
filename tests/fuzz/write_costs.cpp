// write_costs THING[,THING[,THING]] N FILE: a capture with N of each countable thing that is named,
// and one of all others. Each number comes twice, far apart, so that what it counts lasts long;
// prints the bytes of its blocks, decompressed. Without arguments: lists the things. costs_test.py
// reads such captures in every view.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/block.h"
#include "format/events.h"
#include "format/writer.h"

namespace xpu {
namespace {

// One declaration for each thing: WriteRow refers to its number as of.NAME.
// clang-format off
#define XPU_THINGS(THING) \
  THING(devices) THING(processes) THING(threads) THING(streams) THING(names) THING(waits) \
  THING(graphs) THING(modules) THING(counters) THING(communicators) THING(steps) THING(sources) \
  THING(strings) THING(stacks) THING(depth) THING(ranges) THING(containers) THING(allocations) \
  THING(pauses)
// clang-format on

// The numbers of a row, from 0; 0 in all rows of a thing that is not counted.
struct Row {
#define XPU_NUMBER(name) uint32_t name = 0;
  XPU_THINGS(XPU_NUMBER)
#undef XPU_NUMBER
};
struct Thing {
  std::string_view name;
  uint32_t Row::*number;
};
#define XPU_THING(name) Thing{#name, &Row::name},
constexpr std::array kThings = {XPU_THINGS(XPU_THING)};
#undef XPU_THING

constexpr uint64_t kStartNs = 1'000'000'000;
constexpr uint64_t kRowNs = 10'000;
// Each thing comes in another order, so that pairs are met in none of both.
constexpr std::array<uint64_t, 3> kSteps = {1, 7919, 104'729};

class RowWriter {
 public:
  RowWriter(CaptureWriter& writer, uint32_t rows) : writer_(writer), rows_(rows) {}

  void Begin() {
    Write(RecordingInfo{.start_ns = kStartNs,
                        .start_realtime_ns = kStartNs,
                        .host_name = Text("host"),
                        .command_line = Text("./app"),
                        .launch_stacks = LaunchStackSource::kInProcess});
    Write(SampleSource{.source = 1,
                       .name = Text("cpu-clock"),
                       .frequency_hz = 99,
                       .period = kRowNs,
                       .unit = Text("ns")});
  }
  void WriteRow(uint32_t number, const Row& of) {
    row_ = of;
    number_ = number;
    at_ns_ = kStartNs + number * kRowNs;
    pid_ = 100 + of.processes;
    tid_ = of.threads == 0 ? pid_ : 10'000'000 + of.threads;
    instance_ = InstanceId{uint64_t{1} + of.processes};
    WriteProcess();
    WriteCpu();
    WriteCalls();
    WriteWork();
    WriteMemory();
    WriteGpuMetrics();
    WriteGpuCode();
  }
  void End() { Write(RecordingEnd{.time_ns = kStartNs + rows_ * kRowNs, .target_pid = 100}); }

 private:
  template <typename Event>
  void Write(const Event& event) {
    XPU_CHECK(writer_.Write(event).ok());
  }
  StringId Text(const std::string& text) { return writer_.InternString(text); }
  StringId Numbered(const char* text, uint32_t number) {
    return Text(text + std::to_string(number));
  }
  // What counts with any of the strings.
  StringId Name(const char* text, uint32_t number) {
    return Numbered(text, number + row_.strings * 1000);
  }
  StackId Stack() {
    std::vector<Frame> frames = {{FrameKind::kUser, 0x400000 + uint64_t{row_.stacks} * 64}};
    for (uint32_t i = 0; row_.depth > 0 && i < 1000; ++i) {
      frames.push_back({FrameKind::kUser, 0x500000 + i * 16});
    }
    if (row_.depth > 0) frames.front().address += uint64_t{row_.depth} % 64 * 64;
    frames.push_back({FrameKind::kUser, 0x10'000'000 + uint64_t{row_.modules} * 0x10000});
    frames.push_back({FrameKind::kUser, 0x400010});
    return writer_.InternStack(frames);
  }
  StackId PythonStack() {
    const Frame frames[] = {{FrameKind::kPython, (uint64_t{row_.sources} + 1) << 32}};
    return writer_.InternStack(frames);
  }

  void WriteProcess() {
    Write(ProcessEvent{.time_ns = at_ns_,
                       .pid = pid_,
                       .tid = pid_,
                       .parent_pid = 1,
                       .name = Name("process", row_.processes)});
    Write(ProcessEvent{.time_ns = at_ns_,
                       .kind = ProcessEventKind::kFork,
                       .pid = pid_,
                       .tid = tid_,
                       .parent_pid = pid_,
                       .parent_tid = pid_});
    Write(Mapping{.time_ns = at_ns_,
                  .pid = pid_,
                  .tid = pid_,
                  .start_address = 0x10'000'000 + uint64_t{row_.modules} * 0x10000,
                  .size_bytes = 0x10000,
                  .protection = 5,
                  .path = Name("/lib/lib", row_.modules),
                  .inode = row_.modules});
    Write(ContainerInfo{.time_ns = at_ns_,
                        .pid = pid_,
                        .id = Name("container", row_.containers),
                        .name = Name("box", row_.containers)});
    Write(GeneratedSymbol{.pid = pid_,
                          .address = 0x400000 + uint64_t{row_.stacks} * 64,
                          .size_bytes = 64,
                          .name = Name("function", row_.stacks)});
    Write(GpuProcess{.time_ns = at_ns_,
                     .instance = instance_,
                     .state = InjectState::kActive,
                     .pid = pid_,
                     .namespace_pid = pid_});
    Write(ClockPair{
        .instance = instance_, .before_ns = at_ns_, .clock_ns = at_ns_, .after_ns = at_ns_});
    Write(RankInfo{.time_ns = at_ns_,
                   .instance = instance_,
                   .pid = pid_,
                   .rank = static_cast<int32_t>(row_.processes),
                   .world_size = static_cast<int32_t>(rows_)});
    Write(CallbackName{.instance = instance_,
                       .domain = ApiDomain::kRuntime,
                       .callback_id = 211,
                       .name = Text("cudaLaunchKernel_v7000")});
    if (row_.pauses == 0) return;
    for (const bool is_on : {false, true}) {
      Write(RecordingSwitch{.time_ns = at_ns_ + (is_on ? 960u : 950u),
                            .is_on = is_on,
                            .cause = Name("cause", row_.pauses)});
    }
  }
  void WriteCpu() {
    Write(CpuSample{.time_ns = at_ns_,
                    .source = 1,
                    .pid = pid_,
                    .tid = tid_,
                    .stack = Stack(),
                    .python_stack = PythonStack()});
    // Waits overlap if they are counted: of many threads at once.
    const uint64_t end_ns = row_.waits == 0 ? at_ns_ + 500 : kStartNs + rows_ * kRowNs;
    Write(OffCpuWait{.start_ns = at_ns_,
                     .end_ns = end_ns,
                     .pid = pid_,
                     .tid = tid_,
                     .state = OffCpuState::kBlocked,
                     .system_call = 202,
                     .stack = Stack(),
                     .ready_ns = end_ns,
                     .argument = uint64_t{row_.waits} * 64});
    Write(OffCpuSum{.time_ns = at_ns_,
                    .pid = pid_,
                    .tid = tid_,
                    .state = OffCpuState::kRunning,
                    .count = 1,
                    .duration = 1000});
    Write(Probe{.probe = 1 + row_.names, .function = Name("probe", row_.names)});
    Write(ProbeHit{
        .time_ns = at_ns_, .probe = 1 + row_.names, .pid = pid_, .tid = tid_, .stack = Stack()});
    Write(PythonCode{.code = 1 + row_.sources,
                     .name = Name("forward", row_.sources),
                     .path = Name("/app/torchinductor_", row_.sources),
                     .first_line = 1});
    Write(SourceText{.path = Name("/app/torchinductor_", row_.sources),
                     .first_line = 1,
                     .text = Text(row_.sources == 0 ? "line\n" : std::string(20'000, '\1'))});
  }
  // What NCCL says of a call.
  void AddPayload(NvtxEvent& push) {
    constexpr std::array kFields = {"NCCL communicator ID", "Message size [bytes]", "No. of ranks"};
    for (uint32_t i = 0; i < kFields.size(); ++i) {
      Write(NvtxSchemaEntry{.instance = instance_,
                            .domain = push.domain,
                            .schema = 1,
                            .entry = i,
                            .name = Text(kFields[i]),
                            .type = 18,  // 64 bits
                            .offset = 8 * i});
    }
    const std::array<uint64_t, 3> payload = {row_.communicators, 4096, rows_};
    push.payload_type = NvtxPayload::kExtended;
    push.payload_schema = 1;
    push.payload_data = Text({reinterpret_cast<const char*>(payload.data()), sizeof(payload)});
  }
  void WriteCalls() {
    const std::string text = row_.communicators > 0 ? "ncclAllReduce"
                             : row_.ranges > 0      ? "range"
                                                    : "step";
    const StringId name = Name(text.c_str(), row_.ranges);
    NvtxEvent push{.instance = instance_,
                   .time_ns = at_ns_,
                   .kind = NvtxKind::kPush,
                   .tid = tid_,
                   .domain = row_.communicators,
                   .text = name};
    if (row_.communicators > 0) AddPayload(push);
    Write(push);
    Write(NvtxEvent{.instance = instance_,
                    .time_ns = at_ns_ + 900,
                    .kind = NvtxKind::kPop,
                    .tid = tid_,
                    .domain = row_.communicators});
    // Ranges that are counted overlap.
    for (const bool is_end : {false, true}) {
      if (row_.ranges == 0) break;
      Write(NvtxEvent{.instance = instance_,
                      .time_ns = is_end ? kStartNs + rows_ * kRowNs + number_ : at_ns_,
                      .kind = is_end ? NvtxKind::kEnd : NvtxKind::kStart,
                      .tid = tid_,
                      .range = row_.ranges,
                      .text = name});
    }
    Write(ApiCall{.instance = instance_,
                  .domain = ApiDomain::kRuntime,
                  .callback_id = 211,
                  .correlation_id = number_ + 1,
                  .tid = tid_,
                  .start_ns = at_ns_ + 100,
                  .end_ns = at_ns_ + 200});
    Write(LaunchStack{.instance = instance_,
                      .correlation_id = number_ + 1,
                      .domain = ApiDomain::kRuntime,
                      .callback_id = 211,
                      .time_ns = at_ns_ + 100,
                      .pid = pid_,
                      .tid = tid_,
                      .stack = Stack(),
                      .python_stack = PythonStack()});
  }
  void WriteWork() {
    const uint32_t stream = 7 + row_.streams;
    const uint64_t start_ns = at_ns_ + 300;
    std::string kernel = "gemm<" + std::to_string(row_.names) + ">(float*)";
    if (row_.communicators > 0) kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    Write(Kernel{.instance = instance_,
                 .start_ns = start_ns,
                 .end_ns = start_ns + 400,
                 .correlation_id = number_ + 1,
                 .device_id = row_.devices,
                 .context_id = 1,
                 .stream_id = stream,
                 .graph_id = row_.graphs,
                 .graph_node_id = row_.graphs,
                 .name = Text(kernel)});
    Write(Memcpy{.instance = instance_,
                 .start_ns = start_ns + 400,
                 .end_ns = start_ns + 500,
                 .size_bytes = 100,
                 .correlation_id = number_ + 1,
                 .device_id = row_.devices,
                 .context_id = 1,
                 .stream_id = stream,
                 .copy_kind = 1});
    Write(Memset{.instance = instance_,
                 .start_ns = start_ns + 500,
                 .end_ns = start_ns + 600,
                 .size_bytes = 100,
                 .correlation_id = number_ + 1,
                 .device_id = row_.devices,
                 .context_id = 1,
                 .stream_id = stream});
    const uint64_t until_ns = row_.waits == 0 ? start_ns + 600 : kStartNs + rows_ * kRowNs;
    Write(Synchronization{.instance = instance_,
                          .start_ns = start_ns,
                          .end_ns = until_ns,
                          .type = 3u + number_ % 2,
                          .correlation_id = number_ + 1,
                          .context_id = 1,
                          .stream_id = stream});
    Write(Overhead{
        .instance = instance_, .start_ns = start_ns, .end_ns = start_ns + 10, .overhead_kind = 1});
    Write(JitOperation{.instance = instance_,
                       .start_ns = start_ns,
                       .end_ns = start_ns + 10,
                       .entry_kind = 1,
                       .operation = 3,
                       .device_id = row_.devices,
                       .correlation_id = number_ + 1,
                       .cache_path = Name("/cache", row_.strings),
                       .tid = tid_});
    if (row_.graphs == 0) return;
    Write(GraphNode{.instance = instance_,
                    .time_ns = at_ns_,
                    .node_id = row_.graphs,
                    .graph_id = row_.graphs,
                    .tid = tid_,
                    .correlation_id = number_ + 1});
    Write(GraphNode{.instance = instance_,
                    .time_ns = at_ns_,
                    .change = GraphNodeChange::kCloned,
                    .node_id = row_.graphs + 1,
                    .original_node_id = row_.graphs,
                    .graph_id = row_.graphs,
                    .tid = tid_});
    Write(GraphLaunch{.instance = instance_,
                      .start_ns = start_ns,
                      .end_ns = start_ns + 400,
                      .correlation_id = number_ + 1,
                      .device_id = row_.devices,
                      .context_id = 1,
                      .stream_id = stream,
                      .graph_id = row_.graphs});
  }
  void WriteMemory() {
    const uint64_t address = 4096 + uint64_t{row_.allocations} * 512;
    Write(MemoryOperation{.instance = instance_,
                          .time_ns = at_ns_,
                          .operation = 1,
                          .memory_kind = 3,
                          .correlation_id = number_ + 1,
                          .address = address,
                          .size_bytes = 512,
                          .device_id = row_.devices,
                          .context_id = 1});
    Write(AllocatorEvent{.instance = instance_,
                         .time_ns = at_ns_,
                         .pid = pid_,
                         .tid = tid_,
                         .allocator = AllocatorKind::kPyTorch,
                         .device_id = row_.devices,
                         .address = address,
                         .size_bytes = 512,
                         .has_totals = true,
                         .allocated_bytes = number_ * uint64_t{512},
                         .reserved_bytes = number_ * uint64_t{1024},
                         .stack = Stack(),
                         .python_stack = PythonStack()});
  }
  void WriteGpuMetrics() {
    const std::string uuid = "gpu-----" + std::to_string(10'000'000 + row_.devices);
    Write(Device{.instance = instance_,
                 .device_id = row_.devices,
                 .name = Text("NVIDIA H200"),
                 .uuid = Text(uuid),
                 .multiprocessor_count = 132});
    Write(GpuDevice{.gpu = 1 + row_.devices, .uuid = Text(uuid), .name = Text("NVIDIA H200")});
    Write(GpuState{.time_ns = at_ns_, .gpu = 1 + row_.devices, .sm_clock = 1900, .power = 500'000});
    Write(GpuFault{.time_ns = at_ns_, .gpu = 1 + row_.devices, .kind = 8, .code = 79});
    const uint32_t metric = 1 + std::max(row_.counters, row_.devices);
    Write(GpuMetric{.metric = metric,
                    .gpu = 1 + row_.devices,
                    .name = Name("metric", metric),
                    .unit = Text("%"),
                    .quantum = 1});
    Write(GpuMetricSample{.instance = instance_,
                          .gpu = 1 + row_.devices,
                          .metric = metric,
                          .start_ns = at_ns_ + 300,
                          .end_ns = at_ns_ + 700,
                          .value_0 = 50});
  }
  void WriteGpuCode() {
    Write(GpuSampling{.instance = instance_,
                      .time_ns = at_ns_,
                      .since_ns = kStartNs,
                      .context_id = 1,
                      .device_id = row_.devices,
                      .period = 1024,
                      .samples = 5});
    Write(GpuSample{.instance = instance_,
                    .time_ns = at_ns_,
                    .context_id = 1,
                    .cubin_crc = 100 + row_.modules,
                    .function_index = 1 + row_.names,
                    .function = Text("gemm<" + std::to_string(row_.names) + ">(float*)"),
                    .offset = row_.stacks * uint64_t{16},
                    .stall_reason = Name("stall", 0),
                    .samples = 5});
    Write(CubinSlice{.instance = instance_,
                     .cubin_crc = 100 + row_.modules,
                     .part_count = 1,
                     .bytes = Text("none")});
  }

  CaptureWriter& writer_;
  const uint64_t rows_;
  Row row_;
  uint32_t number_ = 0;
  uint64_t at_ns_ = 0;
  uint32_t pid_ = 0;
  uint32_t tid_ = 0;
  InstanceId instance_;
};

size_t RawBytes(const std::string& path) {
  auto file = FileBytes::Open(path);
  XPU_CHECK(file.ok());
  const auto bytes = file->bytes();
  size_t raw_bytes = 0;
  for (size_t at = FindBlockMagic(bytes, 0); at < bytes.size();
       at = FindBlockMagic(bytes, at + 1)) {
    if (const auto header = ParseBlockHeader(bytes.subspan(at))) raw_bytes += header->raw_bytes;
  }
  return raw_bytes;
}

bool WriteCapture(std::string_view names, uint32_t rows, const std::string& path) {
  std::vector<uint32_t Row::*> counted;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto* const thing = std::find_if(kThings.begin(), kThings.end(),
                                           [&](const Thing& one) { return one.name == name; });
    if (thing == kThings.end() || counted.size() == kSteps.size()) return false;
    counted.push_back(thing->number);
  }
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  auto writer = CaptureWriter::Create(std::move(fd), path);
  XPU_CHECK(writer.ok());
  RowWriter row_writer(*writer, 2 * rows);
  row_writer.Begin();
  for (uint32_t i = 0; i < 2 * rows; ++i) {
    Row row;
    for (size_t k = 0; k < counted.size(); ++k) {
      row.*counted[k] = static_cast<uint32_t>(i * kSteps[k] % rows);
    }
    row_writer.WriteRow(i, row);
  }
  row_writer.End();
  XPU_CHECK(writer->Close().ok());
  return true;
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (argc == 1) {
    for (const xpu::Thing& thing : xpu::kThings)
      std::printf("%s\n", std::string(thing.name).c_str());
    return 0;
  }
  const auto rows = argc == 4 ? static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)) : 0;
  if (rows == 0 || !xpu::WriteCapture(argv[1], rows, argv[3])) {
    std::fprintf(stderr, "usage: write_costs THING[,THING[,THING]] N FILE\n");
    return 2;
  }
  std::printf("%zu\n", xpu::RawBytes(argv[3]));
  return 0;
}
