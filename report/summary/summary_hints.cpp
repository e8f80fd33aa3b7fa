#include "report/summary/summary_hints.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "format/base/text.h"
#include "report/correlate/overheads.h"
#include "report/model/run_time.h"
#include "report/text.h"
#include "report/tree/call_tree.h"
#include "report/tree/gpu_names.h"

namespace xpu {
namespace {

constexpr size_t kMost = 4;
// Below these a hint would be about noise.
constexpr double kMuchIdle = 0.3;
constexpr double kMostlyBusy = 0.8;
constexpr double kManyShort = 0.5;
constexpr uint64_t kManyKernels = 100;
constexpr uint64_t kShortNs = 5'000;
constexpr double kMuchCopying = 0.05;
constexpr double kMuchWaiting = 0.2;
constexpr double kMuchOverhead = 0.05;
// CUpti_ActivityMemoryKind
constexpr uint8_t kPageable = 1;

double ShareOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string Percent(double share) {
  // Not "100 %" of something that was not all.
  return share < 1 && share > 0.995 ? "over 99 %" : Format("{:.0f} %", 100 * share);
}

class Hints {
 public:
  Hints(const Analysis& analysis, const std::vector<GpuBusy>& gpus)
      : analysis_(analysis), gpus_(gpus), run_ns_(RunTimeNs(analysis.model)) {}

  std::vector<Hint> Find() {
    // What looks idle in a part may be busy with the rest.
    if (!analysis_.part.empty()) return {};
    const double idle = AddIdle();
    AddShortKernels(idle);
    AddWaiting();
    AddPageable();
    AddBusy();
    AddCompiling();
    AddOverhead();
    AddReplays();
    if (hints_.size() > kMost) hints_.resize(kMost);
    return std::move(hints_);
  }

 private:
  void Add(std::string what, std::string next) {
    hints_.push_back({std::move(what), std::move(next)});
  }
  double AddIdle();
  void AddShortKernels(double idle);
  void AddWaiting();
  void AddPageable();
  void AddBusy();
  void AddCompiling();
  void AddOverhead();
  void AddReplays();
  uint64_t LifeNs(ProcessId process) const;

  const Analysis& analysis_;
  const std::vector<GpuBusy>& gpus_;
  const uint64_t run_ns_;
  std::vector<Hint> hints_;
};

// The share of the most idle GPU.
double Hints::AddIdle() {
  const GpuBusy* worst = nullptr;
  double most = 0;
  for (const GpuBusy& gpu : gpus_) {
    const double idle = 1 - ShareOf(gpu.busy_ns, gpu.active_ns());
    if (gpu.active_ns() == 0 || idle <= most) continue;
    most = idle;
    worst = &gpu;
  }
  if (worst == nullptr || most < kMuchIdle) return most;
  Add(Format("GPU {} was idle for {} of the {} between its first and its last work. What the CPU "
             "did meanwhile:",
             worst->gpu, Percent(most), HumanDuration(worst->active_ns())),
      "--flamegraph --mode idle -o idle.html");
  return most;
}

// Only where the GPU waits: short kernels that keep it busy are launched fast enough.
void Hints::AddShortKernels(double idle) {
  uint64_t kernels = 0;
  uint64_t short_ones = 0;
  for (const GpuWork& work : analysis_.correlation.work) {
    // A graph launches its nodes at once.
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    if (work.origin != NodeOrigin::kNoNode) continue;
    ++kernels;
    short_ones += work.duration_ns < kShortNs;
  }
  const double share = ShareOf(short_ones, kernels);
  if (kernels < kManyKernels || share < kManyShort || idle < kMuchIdle) return;
  Add(Format("{} of {} kernels are shorter than 5 us while the GPU is idle: likely launch-bound. "
             "Consider "
             "CUDA graphs or larger kernels. Launch and queue times:",
             Percent(share), WithThousands(kernels)),
      "--top --table cuda_kern_exec_sum");
}

uint64_t Hints::LifeNs(ProcessId process) const {
  if (!process || analysis_.model.events.recording_info.empty()) return run_ns_;
  const uint64_t start_ns = StartOf(analysis_.model);
  const ProcessTable::Process& life = analysis_.processes[process];
  const uint64_t from_ns = std::max(life.start_ns, start_ns);
  const uint64_t to_ns = life.end_ns == 0 ? start_ns + run_ns_ : life.end_ns;
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

void Hints::AddWaiting() {
  std::map<ProcessId, uint64_t> waits;
  for (const Launch& launch : analysis_.correlation.launches) {
    if (!launch.has_call || launch.tid != launch.pid || launch.pid == 0) continue;
    const std::string& name = ApiNameOf(analysis_.api_names, launch);
    if (name.find("Synchronize") == std::string::npos) continue;
    const ProcessId process = analysis_.processes.At(launch.pid, launch.start_ns);
    waits[process] = AddSaturated(waits[process], launch.end_ns - launch.start_ns);
  }
  double most = 0;
  ProcessId worst;
  for (const auto& [process, ns] : waits) {
    const double share = std::min(1.0, ShareOf(ns, LifeNs(process)));
    if (share > most) std::tie(most, worst) = std::pair(share, process);
  }
  if (most < kMuchWaiting) return;
  const std::string_view name = worst ? analysis_.processes.Name(worst) : "";
  Add(Format("Synchronisation takes {} of the time of the main thread{}{}. What it waits "
             "for:",
             Percent(most), name.empty() ? "" : " of ", name),
      "--top --table cuda_wait_sum");
}

void Hints::AddPageable() {
  uint64_t to_gpu_ns = 0;
  uint64_t from_gpu_ns = 0;
  uint64_t bytes = 0;
  uint64_t all_ns = 0;
  for (const GpuWork& work : analysis_.correlation.work) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    all_ns = AddSaturated(all_ns, work.duration_ns);
    if (work.kind != WorkKind::kMemcpy) continue;
    const Memcpy& copy = analysis_.model.events.memcpys[work.index];
    if (copy.source_kind != kPageable && copy.destination_kind != kPageable) continue;
    uint64_t& ns = copy.source_kind == kPageable ? to_gpu_ns : from_gpu_ns;
    ns = AddSaturated(ns, work.duration_ns);
    bytes = AddSaturated(bytes, copy.size_bytes);
  }
  const uint64_t pageable_ns = AddSaturated(to_gpu_ns, from_gpu_ns);
  if (ShareOf(pageable_ns, all_ns) < kMuchCopying) return;
  Add(Format("Copies {} pageable memory take {} of all GPU work ({}, {}): pinned memory copies "
             "faster and does not hold up the CPU. Each copy:",
             to_gpu_ns >= from_gpu_ns ? "from" : "to", Percent(ShareOf(pageable_ns, all_ns)),
             HumanDuration(pageable_ns), HumanBytes(bytes)),
      "--top --table cuda_gpu_trace");
}

void Hints::AddBusy() {
  const GpuBusy* busiest = nullptr;
  double most = 0;
  for (const GpuBusy& gpu : gpus_) {
    const double busy = ShareOf(gpu.busy_ns, gpu.active_ns());
    if (busy <= most) continue;
    most = busy;
    busiest = &gpu;
  }
  // One short piece of work is always busy from its start to its end.
  if (busiest == nullptr || most < kMostlyBusy || busiest->spans.size() < 2) return;
  const double of_run = ShareOf(busiest->busy_ns, run_ns_);
  if (run_ns_ > 0 && of_run < kMostlyBusy / 2) {
    Add(Format("GPU {} was busy from its first to its last work, but only for {} of the run. What "
               "the program did before and after:",
               busiest->gpu, Percent(of_run)),
        "--top --table cpu_func_sum");
    return;
  }
  Add(Format("GPU {} was busy for {} of the time from its first to its last work: its kernels set "
             "the pace. The code that launches them:",
             busiest->gpu, Percent(most)),
      "--top --table callpath_sum");
}

// A compilation is not in the overheads of CUPTI; loading is.
void Hints::AddCompiling() {
  uint64_t ns = 0;
  for (const JitOperation& jit : analysis_.model.events.jit_operations) {
    if (IsTimed(jit) && IsCompilation(jit)) ns = AddSaturated(ns, jit.end_ns - jit.start_ns);
  }
  if (ShareOf(ns, run_ns_) < kMuchOverhead) return;
  Add(Format("The driver compiled code for the GPU for {} while the program ran. Code for its "
             "architecture in the program (nvcc -arch) or a cache that outlives it "
             "(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE) saves that. What was compiled:",
             HumanDuration(ns)),
      "--top --table jit_sum");
}

void Hints::AddOverhead() {
  uint64_t loading_ns = 0;
  uint64_t other_ns = 0;
  for (const Overhead& overhead : analysis_.model.events.overheads) {
    if (!IsTimed(overhead)) continue;
    uint64_t& ns = IsLazyLoading(overhead) ? loading_ns : other_ns;
    ns = AddSaturated(ns, overhead.end_ns - overhead.start_ns);
  }
  if (ShareOf(loading_ns, run_ns_) >= kMuchOverhead) {
    Add(Format("Loading code at its first use took {}: CUDA_MODULE_LOADING=EAGER moves that to the "
               "start of the program. Each kind:",
               HumanDuration(loading_ns)),
        "--top --table cuda_overhead_sum");
  }
  if (ShareOf(other_ns, run_ns_) >= kMuchOverhead) {
    Add(Format("The driver and CUPTI spent {} on themselves (buffers, setting up):",
               HumanDuration(other_ns)),
        "--top --table cuda_overhead_sum");
  }
}

void Hints::AddReplays() {
  uint64_t replays_ns = 0;
  uint64_t all_ns = 0;
  for (const GpuWork& work : analysis_.correlation.work) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    all_ns = AddSaturated(all_ns, work.duration_ns);
    if (work.kind == WorkKind::kGraph) replays_ns = AddSaturated(replays_ns, work.duration_ns);
  }
  if (ShareOf(replays_ns, all_ns) < kManyShort) return;
  hints_.push_back({Format("{} of the GPU work is in replays of CUDA graphs that are recorded as "
                           "one each. To see their kernels, record with xpu-record "
                           "--cuda-graph-trace=node.",
                           Percent(ShareOf(replays_ns, all_ns))),
                    ""});
}

}  // namespace

std::vector<Hint> FindHints(const Analysis& analysis, const std::vector<GpuBusy>& gpus) {
  return Hints(analysis, gpus).Find();
}

}  // namespace xpu
