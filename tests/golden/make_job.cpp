// make_job DIRECTORY [RANKS STEPS [attached]]: writes the captures of a training job of 64 ranks on
// hosts with 8 GPUs, of which two ranks are missing, and prints what was planted, as JSON: by how
// much the clock of each host is ahead of the first one's, and when each rank arrived at each
// collective, in nanoseconds of the first host's CLOCK_MONOTONIC.
//
// attached: there are no NVTX ranges, the recording begins on each rank up to 40 collectives later
// than on the first, each fifth rank loses three records in the middle, and every tenth step has a
// broadcast, in which the root does not wait.
//
// The hosts' clocks are off by milliseconds and drift. Each step is a kernel, an all-reduce and an
// all-gather. Rank 13 is late in steps 10 to 14, because its thread is in load_batch(); rank 42 in
// steps 20 to 24, because its GPU runs slow_kernel. Blocks are small, so that damage to a file
// hits a part of it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "format/events.h"
#include "format/writer.h"

namespace {

using namespace xpu;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kUs = 1'000;
constexpr int kRanksPerHost = 8;
constexpr int kMissing[] = {7, 30};
constexpr uint64_t kStepNs = 25 * kMs;
constexpr uint64_t kBeginNs = 1000 * 1000 * kMs;         // of the steps, on the first host's clock
constexpr uint64_t kWallNs = 1'700'000'000'000'000'000;  // when that clock was 0
constexpr uint64_t kCommunicator = 0xabcdef0123456789;
constexpr uint64_t kReduceBytes = uint64_t{64} << 20, kGatherBytes = 1 << 20;
constexpr uint64_t kSchema = 1 << 24, kInitSchema = kSchema + 1;
constexpr uint64_t kText = 0x7f0000000000;

struct Options {
  int ranks = 64;
  int steps = 60;
  bool is_attached = false;

  bool IsMissing(int rank) const {
    return ranks == 64 && !is_attached && (rank == kMissing[0] || rank == kMissing[1]);
  }
  bool HasBroadcast(int step) const { return is_attached && step % 10 == 9; }
  // The first step that is recorded, and those whose collectives are lost.
  int FirstStep(int rank) const { return is_attached ? rank * 7 % 21 : 0; }
  bool IsLost(int rank, int step) const {
    return is_attached && rank % 5 == 4 && step >= steps / 2 && step < steps / 2 + 3;
  }
};

// The same in every run.
uint64_t Noise(uint64_t seed, uint64_t below) {
  seed = (seed + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
  return (seed ^ seed >> 31) % below;
}

// The clocks of a host.
struct Host {
  int number = 0;
  int64_t ahead_ns = 0;   // its wall clock, at the beginning
  double drift = 0;       // of both clocks
  uint64_t later_ns = 0;  // its CLOCK_MONOTONIC began that much later

  uint64_t Elapsed(uint64_t true_ns) const {
    const double since = static_cast<double>(static_cast<int64_t>(true_ns - kBeginNs));
    return true_ns + static_cast<uint64_t>(static_cast<int64_t>(drift * since));
  }
  uint64_t Monotonic(uint64_t true_ns) const { return Elapsed(true_ns) - later_ns; }
  uint64_t Wall(uint64_t true_ns) const {
    return kWallNs + Elapsed(true_ns) + static_cast<uint64_t>(ahead_ns);
  }
};

Host HostOf(int number) {
  Host host{.number = number};
  if (number == 0) return host;
  host.ahead_ns = static_cast<int64_t>(Noise(static_cast<uint64_t>(number), 8 * kMs)) -
                  static_cast<int64_t>(4 * kMs);
  host.drift = (static_cast<double>(Noise(static_cast<uint64_t>(number) + 100, 41)) - 20) * 1e-6;
  host.later_ns = static_cast<uint64_t>(number % 90) * 10'000 * kMs;
  return host;
}

// When each rank did what in a step, in true time.
struct PlannedStep {
  explicit PlannedStep(int ranks)
      : gemm_ns(static_cast<size_t>(ranks)),
        reduce_arrival_ns(static_cast<size_t>(ranks)),
        gather_arrival_ns(static_cast<size_t>(ranks)) {}

  std::vector<uint64_t> gemm_ns;            // by rank
  std::vector<uint64_t> reduce_arrival_ns;  // likewise
  uint64_t reduce_end_ns = 0;
  std::vector<uint64_t> gather_arrival_ns;  // likewise
  uint64_t gather_end_ns = 0;
};
struct Plan {
  Options options;
  std::vector<PlannedStep> steps;
};

// Of few ranks it is the last one.
bool IsLateOnCpu(const Options& options, int rank, int step) {
  return rank == std::min(13, options.ranks - 1) &&
         (options.is_attached ? step % 7 == 3 : step >= 10 && step < 15);
}
bool IsLateOnGpu(const Options& options, int rank, int step) {
  return !options.is_attached && rank == 42 && step >= 20 && step < 25;
}

Plan MakePlan(const Options& options) {
  Plan plan{options, {}};
  for (int step = 0; step < options.steps; ++step) {
    PlannedStep& of = plan.steps.emplace_back(options.ranks);
    const uint64_t begin_ns = kBeginNs + static_cast<uint64_t>(step) * kStepNs;
    uint64_t last_ns = 0;
    for (int rank = 0; rank < options.ranks; ++rank) {
      const auto i = static_cast<size_t>(rank);
      const uint64_t seed = static_cast<uint64_t>(step * options.ranks + rank);
      of.gemm_ns[i] = begin_ns + Noise(seed, 50 * kUs);
      uint64_t at_ns = begin_ns + 4 * kMs + Noise(seed + 10'000, 200 * kUs);
      if (IsLateOnCpu(options, rank, step)) at_ns += 5 * kMs;
      if (IsLateOnGpu(options, rank, step)) at_ns += 4 * kMs;
      of.reduce_arrival_ns[i] = at_ns;
      last_ns = std::max(last_ns, at_ns);
    }
    of.reduce_end_ns = last_ns + 2 * kMs;
    last_ns = 0;
    for (int rank = 0; rank < options.ranks; ++rank) {
      const auto i = static_cast<size_t>(rank);
      const uint64_t seed = static_cast<uint64_t>(step * options.ranks + rank) + 20'000;
      of.gather_arrival_ns[i] = of.reduce_end_ns + 500 * kUs + Noise(seed, 100 * kUs);
      last_ns = std::max(last_ns, of.gather_arrival_ns[i]);
    }
    of.gather_end_ns = last_ns + kMs;
  }
  return plan;
}

class RankWriter {
 public:
  RankWriter(const Plan& plan, int rank, CaptureWriter writer)
      : plan_(plan),
        rank_(rank),
        host_(HostOf(rank / kRanksPerHost)),
        pid_(static_cast<uint32_t>(1000 + rank)),
        instance_{static_cast<uint64_t>(0x100 + rank)},
        writer_(std::move(writer)) {}

  void Run() {
    Begin();
    const Options& options = plan_.options;
    for (int step = options.FirstStep(rank_); step < options.steps; ++step) Step(step);
    RecordingEnd end{};
    end.time_ns = host_.Monotonic(kBeginNs + plan_.steps.size() * kStepNs);
    end.target_pid = pid_;
    Put(end);
    XPU_CHECK(writer_.Close().ok());
  }

 private:
  template <typename Event>
  void Put(const Event& event) {
    XPU_CHECK(writer_.Write(event).ok());
  }
  StringId Text(std::string_view text) { return writer_.InternString(text); }

  void Begin() {
    const uint64_t start_ns = kBeginNs - 200 * kMs + static_cast<uint64_t>(rank_) * kMs;
    RecordingInfo info{};
    info.start_ns = host_.Monotonic(start_ns);
    info.start_realtime_ns = host_.Wall(start_ns);
    info.recorder_pid = pid_ - 1;
    info.cpu_count = 8;
    info.host_name = Text(Format("node{}", host_.number));
    info.boot_id = Text(Format("boot{}", host_.number));
    info.command_line = Text("train");
    info.recording = static_cast<uint64_t>(rank_) + 1;
    Put(info);
    RankInfo rank{};
    rank.time_ns = info.start_ns;
    rank.instance = instance_;
    rank.pid = pid_;
    rank.launcher = Launcher::kSlurm;
    rank.rank = rank_;
    rank.local_rank = rank_ % kRanksPerHost;
    rank.world_size = plan_.options.ranks;
    rank.job_id = Text("4711");
    Put(rank);
    SampleSource source{};
    source.source = 1;
    source.period = kMs;
    source.name = Text("cpu-clock");
    source.unit = Text("ns");
    Put(source);
    ProcessEvent process{};
    process.time_ns = info.start_ns;
    process.kind = ProcessEventKind::kExec;
    process.pid = process.tid = pid_;
    process.name = Text("train");
    Put(process);
    GpuProcess gpu{};
    gpu.time_ns = info.start_ns;
    gpu.instance = instance_;
    gpu.pid = gpu.namespace_pid = pid_;
    gpu.state = InjectState::kActive;
    Put(gpu);
    CallbackName call{};
    call.instance = instance_;
    call.domain = ApiDomain::kRuntime;
    call.callback_id = 211;
    call.name = Text("cudaLaunchKernel_v7000");
    Put(call);
    NameCode();
    Describe();
    Clock(start_ns);
  }

  void NameCode() {
    uint64_t address = kText;
    for (const std::string_view name : {"main", "train_step", "load_batch", "all_reduce"}) {
      GeneratedSymbol symbol{};
      symbol.pid = pid_;
      symbol.address = address;
      symbol.size_bytes = 0x1000;
      symbol.name = Text(name);
      Put(symbol);
      address += 0x1000;
    }
    Mapping mapping{};
    mapping.time_ns = host_.Monotonic(kBeginNs - 300 * kMs);
    mapping.pid = mapping.tid = pid_;
    mapping.start_address = kText;
    mapping.size_bytes = 0x4000;
    mapping.protection = 5;
    mapping.path = Text("//anon");
    Put(mapping);
  }

  void Describe() {
    NvtxEvent domain{};
    domain.instance = instance_;
    domain.kind = NvtxKind::kDomain;
    domain.domain = 1;
    domain.text = Text("NCCL");
    Put(domain);
    uint32_t number = 0;
    for (const std::string_view name : {"NCCL communicator ID", "Message size [bytes]"}) {
      Field(kSchema, number, name);
      ++number;
    }
    Field(kInitSchema, 0, "NCCL communicator ID");
    Field(kInitSchema, 1, "No. of ranks");
    Range("ncclCommInitRank", static_cast<uint64_t>(plan_.options.ranks),
          host_.Monotonic(kBeginNs - 100 * kMs), true);
    Range("ncclCommInitRank", 0, host_.Monotonic(kBeginNs - 90 * kMs), false);
  }

  void Field(uint64_t schema, uint32_t number, std::string_view name) {
    NvtxSchemaEntry entry{};
    entry.instance = instance_;
    entry.domain = 1;
    entry.schema = schema;
    entry.entry = number;
    entry.name = Text(name);
    entry.type = 18;  // 64 bits
    entry.offset = 8 * number;
    entry.size_bytes = 16;
    Put(entry);
  }

  void Clock(uint64_t true_ns) {
    ClockPair pair{};
    pair.instance = instance_;
    pair.before_ns = host_.Monotonic(true_ns) - 100;
    pair.clock_ns = host_.Wall(true_ns);
    pair.after_ns = host_.Monotonic(true_ns) + 100;
    Put(pair);
  }

  StackId Stack(std::string_view innermost) {
    const uint64_t place = innermost == "load_batch" ? 0x2000 : 0x3000;
    const Frame frames[] = {{FrameKind::kUser, kText + place + 0x10},
                            {FrameKind::kUser, kText + 0x1010},
                            {FrameKind::kUser, kText + 0x10}};
    return writer_.InternStack(frames);
  }

  // Launched a little earlier than it runs; of a collective inside its range.
  void Run(std::string_view kernel, std::string_view call, uint64_t bytes, uint64_t start_ns,
           uint64_t end_ns, uint64_t queued_ns = 20 * kUs) {
    const uint64_t launch_ns = host_.Monotonic(start_ns - queued_ns);
    if (!call.empty()) Range(call, bytes, launch_ns - kUs, true);
    ++correlation_;
    ApiCall api{};
    api.instance = instance_;
    api.domain = ApiDomain::kRuntime;
    api.callback_id = 211;
    api.correlation_id = correlation_;
    api.tid = pid_;
    api.start_ns = launch_ns;
    api.end_ns = launch_ns + 5 * kUs;
    Put(api);
    LaunchStack stack{};
    stack.instance = instance_;
    stack.correlation_id = correlation_;
    stack.domain = ApiDomain::kRuntime;
    stack.callback_id = 211;
    stack.time_ns = launch_ns;
    stack.pid = stack.tid = pid_;
    stack.stack = Stack("all_reduce");
    Put(stack);
    if (!call.empty()) Range(call, bytes, launch_ns + 6 * kUs, false);
    Kernel run{};
    run.instance = instance_;
    run.record_size_bytes = 216;
    run.start_ns = host_.Wall(start_ns);
    run.end_ns = host_.Wall(end_ns);
    run.correlation_id = correlation_;
    run.stream_id = call.empty() ? 7 : 20;
    run.name = Text(kernel);
    Put(run);
  }

  void Range(std::string_view call, uint64_t bytes, uint64_t at_ns, bool begins) {
    if (plan_.options.is_attached) return;
    NvtxEvent range{};
    range.instance = instance_;
    range.time_ns = at_ns;
    range.kind = begins ? NvtxKind::kPush : NvtxKind::kPop;
    range.tid = pid_;
    range.domain = 1;
    if (begins) {
      const uint64_t payload[] = {kCommunicator, bytes};
      range.text = Text(call);
      range.payload_type = NvtxPayload::kExtended;
      range.payload_schema = call == "ncclCommInitRank" ? kInitSchema : kSchema;
      range.payload_data =
          writer_.InternString({reinterpret_cast<const char*>(payload), sizeof(payload)});
    }
    Put(range);
  }

  void Sample(uint64_t at_ns) {
    CpuSample sample{};
    sample.time_ns = host_.Monotonic(at_ns);
    sample.source = 1;
    sample.pid = sample.tid = pid_;
    sample.stack = Stack("load_batch");
    Put(sample);
  }

  void Step(int step) {
    const Options& options = plan_.options;
    const PlannedStep& of = plan_.steps[static_cast<size_t>(step)];
    const auto rank = static_cast<size_t>(rank_);
    const uint64_t gemm_ns = of.gemm_ns[rank];
    if (step % 64 == 0 || options.steps < 1000) Clock(gemm_ns - kMs);
    Run("gemm_kernel", "", 0, gemm_ns, gemm_ns + 3 * kMs);
    const uint64_t reduce_ns = of.reduce_arrival_ns[rank];
    if (IsLateOnCpu(options, rank_, step)) {
      for (uint64_t at = gemm_ns; at + kMs < reduce_ns; at += kMs) Sample(at);
    }
    if (IsLateOnGpu(options, rank_, step)) {
      Run("slow_kernel", "", 0, gemm_ns + 3 * kMs, reduce_ns - 10 * kUs);
    }
    if (options.IsLost(rank_, step)) return;
    // The ends of real ranks differ by a few microseconds.
    const auto jitter = [&](uint64_t seed) {
      return Noise(seed + static_cast<uint64_t>(step * options.ranks + rank_), 6 * kUs);
    };
    Run("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclAllReduce", kReduceBytes, reduce_ns, of.reduce_end_ns + jitter(30'000),
        IsLateOnGpu(options, rank_, step) ? 4 * kMs : 20 * kUs);
    Run("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclAllGather",
        kGatherBytes, of.gather_arrival_ns[rank], of.gather_end_ns + jitter(40'000));
    if (!options.HasBroadcast(step)) return;
    // The root only has to fill buffers; the others come later.
    const uint64_t begin_ns = of.gather_end_ns + (rank_ == 0 ? 50 * kUs : 2 * kMs);
    Run("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclBroadcast", 4096,
        begin_ns, begin_ns + 100 * kUs + jitter(50'000));
  }

  const Plan& plan_;
  const int rank_;
  const Host host_;
  const uint32_t pid_;
  const InstanceId instance_;
  CaptureWriter writer_;
  uint32_t correlation_ = 0;
};

void Write(const Plan& plan, int rank, const std::string& directory) {
  const std::string path = Format("{}/node{}.rank{}.xpu", directory, rank / kRanksPerHost, rank);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  XPU_CHECK(static_cast<bool>(fd));
  auto writer = CaptureWriter::Create(std::move(fd), path, {.block_bytes = size_t{8} << 10});
  XPU_CHECK(writer.ok());
  RankWriter(plan, rank, std::move(writer).value()).Run();
}

void PrintTruth(const Plan& plan) {
  std::printf("{\"ahead_ns\": [");
  for (int number = 0; number * kRanksPerHost < plan.options.ranks; ++number) {
    const Host host = HostOf(number);
    const double middle = host.drift * static_cast<double>(plan.steps.size() * kStepNs) / 2;
    std::printf("%s%.0f", number == 0 ? "" : ", ", static_cast<double>(host.ahead_ns) + middle);
  }
  std::printf("], \"arrivals_ns\": [");
  const char* separator = "";
  for (const PlannedStep& step : plan.steps) {
    for (const auto* arrivals : {&step.reduce_arrival_ns, &step.gather_arrival_ns}) {
      std::printf("%s[", separator);
      separator = ", ";
      for (size_t rank = 0; rank < arrivals->size(); ++rank) {
        std::printf("%s%llu", rank == 0 ? "" : ", ",
                    static_cast<unsigned long long>((*arrivals)[rank]));
      }
      std::printf("]");
    }
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc > 3) {
    options.ranks = std::atoi(argv[2]);
    options.steps = std::atoi(argv[3]);
    options.is_attached = argc == 5 && std::string_view(argv[4]) == "attached";
  }
  if ((argc != 2 && argc != 4 && !options.is_attached) || options.ranks < 2 || options.steps < 1) {
    std::fprintf(stderr, "usage: %s DIRECTORY [RANKS STEPS [attached]]\n", argv[0]);
    return 2;
  }
  const Plan plan = MakePlan(options);
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (!options.IsMissing(rank)) Write(plan, rank, argv[1]);
  }
  PrintTruth(plan);
  return 0;
}
