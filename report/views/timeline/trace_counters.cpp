#include "report/views/timeline/trace_counters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/analysis/gpu_names.h"
#include "report/base/time_bins.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_memory.h"
#include "report/query/gpu_metrics.h"

namespace xpu {
namespace {

constexpr uint64_t kMostBins = 2000;  // of a counter
// Most levels of a counter of memory: a program allocates a thousand blocks while a pixel passes.
constexpr uint64_t kMostLevels = 20'000;

// A span that adds to a counter. Counters of one GPU differ by `kind`.
struct Part {
  uint32_t gpu = 0;
  uint8_t kind = 0;
  uint32_t index = 0;  // of the work, or of the launch
};

bool IsOnGpu(const GpuWork& work) { return work.timed && work.kind != WorkKind::kSynchronization; }

class Counters {
 public:
  Counters(const Analysis& analysis, uint64_t end_ns, TraceTracks& tracks, TraceSink& sink)
      : analysis_(analysis), end_ns_(end_ns), tracks_(tracks), sink_(sink) {}

  uint64_t Write();

 private:
  void WriteBusy();
  void WriteCopies();
  void WriteQueue();
  void WriteMemory();
  void WriteConditions();
  void WriteMetrics();
  void WriteLevels(const AllocatorUse& use, const std::string& name,
                   uint64_t AllocatorLevel::*bytes);
  // add(index) gives a part to the bins, name(kind) is what its counter is called.
  template <typename Add, typename Name>
  void WriteParts(std::vector<Part> parts, Add&& add, Name&& name, std::string_view series);
  void Drain(uint32_t gpu, std::string_view name, std::string_view series, double scale);

  const Analysis& analysis_;
  const uint64_t end_ns_;
  TraceTracks& tracks_;
  TraceSink& sink_;
  std::optional<TimeBins> bins_;
};

void Counters::Drain(uint32_t gpu, std::string_view name, std::string_view series, double scale) {
  const uint32_t pid = tracks_.Gpu(gpu);
  const auto write = [&](size_t bin, double mean) {
    const uint64_t time_ns = bins_->StartOf(bin);
    if (time_ns < end_ns_) sink_.Counter(pid, name, series, time_ns, std::max(0.0, mean * scale));
  };
  double before = 0;
  size_t end = 0;
  bins_->Drain([&](size_t bin, double amount) {
    const double mean = amount / static_cast<double>(bins_->width_ns());
    if (mean != before) write(bin, mean);
    before = mean;
    end = bin + 1;
  });
  if (before != 0) write(end, 0);
}

void Counters::WriteBusy() {
  for (const GpuBusy& gpu : FindGpuBusy(analysis_)) {
    for (const BusySpan& span : gpu.spans) {
      bins_->Add(span.start_ns, span.end_ns, static_cast<double>(span.end_ns - span.start_ns));
    }
    Drain(gpu.gpu, "busy", "%", 100);
  }
}

void Counters::WriteCopies() {
  const GpuWorkList& all = analysis_.correlation.work;
  const auto copy_of = [&](uint32_t index) {
    return analysis_.model.events.memcpys[all[index].index];
  };
  std::vector<Part> parts;
  for (const uint32_t i : analysis_.Work().places()) {
    if (all[i].kind != WorkKind::kMemcpy || !all[i].timed) continue;
    parts.push_back({all[i].gpu, copy_of(i).copy_kind, i});
  }
  WriteParts(
      std::move(parts),
      [&](uint32_t i) {
        bins_->Add(all[i].start_ns, all[i].end_ns, static_cast<double>(copy_of(i).size_bytes));
      },
      // A byte per nanosecond is 1 GB/s.
      [](uint8_t kind) { return Format("copies {}", CopyKindName(kind)); }, "GB/s");
}

// Each launch waits from its call to the start of its first work.
void Counters::WriteQueue() {
  const LaunchList& launches = analysis_.correlation.launches;
  const GpuWorkList& all = analysis_.correlation.work;
  std::vector<uint32_t> first_work(launches.size(), kNoWork);
  for (const uint32_t i : analysis_.Work().places()) {
    if (!IsOnGpu(all[i]) || all[i].launch == GpuWork::kNoLaunch) continue;
    uint32_t& first = first_work[all[i].launch];
    if (first == kNoWork || all[i].start_ns < all[first].start_ns) first = i;
  }
  std::vector<Part> parts;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    if (first_work[i] == kNoWork) continue;
    const GpuWork& work = all[first_work[i]];
    if (work.start_ns > launches[i].start_ns) parts.push_back({work.gpu, 0, i});
  }
  WriteParts(
      std::move(parts),
      [&](uint32_t i) {
        const uint64_t start_ns = launches[i].start_ns;
        const uint64_t end_ns = all[first_work[i]].start_ns;
        bins_->Add(start_ns, end_ns, static_cast<double>(end_ns - start_ns));
      },
      [](uint8_t) { return "queued"; }, "launches");
}

template <typename Add, typename Name>
void Counters::WriteParts(std::vector<Part> parts, Add&& add, Name&& name,
                          std::string_view series) {
  const auto counter = [](const Part& part) { return std::tuple(part.gpu, part.kind); };
  const auto is_before = [&](const Part& a, const Part& b) { return counter(a) < counter(b); };
  if (!std::is_sorted(parts.begin(), parts.end(), is_before)) {
    std::sort(parts.begin(), parts.end(), is_before);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    add(parts[i].index);
    if (i + 1 < parts.size() && counter(parts[i]) == counter(parts[i + 1])) continue;
    Drain(parts[i].gpu, name(parts[i].kind), series, 1);
  }
}

void Counters::WriteMemory() {
  for (const GpuMemoryUse& use : FollowMemory(analysis_).uses) {
    for (const MemoryLevel& level : use.levels) {
      if (level.time_ns >= end_ns_) break;
      sink_.Counter(tracks_.Gpu(use.gpu), "memory", "MB", level.time_ns,
                    static_cast<double>(level.bytes) / 1e6);
    }
  }
  const AllocatorMemory allocators(analysis_);
  std::map<uint32_t, int> on_gpu;
  for (const AllocatorUse& use : allocators.uses()) ++on_gpu[use.gpu];
  for (const AllocatorUse& use : allocators.uses()) {
    const std::string of = on_gpu[use.gpu] > 1 ? Format(" of {}", use.pid) : "";
    WriteLevels(use, "PyTorch allocated" + of, &AllocatorLevel::allocated_bytes);
    if (use.reserved_peak_bytes > 0) {
      WriteLevels(use, "PyTorch reserved" + of, &AllocatorLevel::reserved_bytes);
    }
  }
}

// A point for each change; of several within a short time the highest and the last one.
void Counters::WriteLevels(const AllocatorUse& use, const std::string& name,
                           uint64_t AllocatorLevel::*bytes) {
  const uint64_t step_ns =
      (use.levels.back().time_ns - use.levels.front().time_ns) / kMostLevels + 1;
  const auto write = [&](const AllocatorLevel& level) {
    sink_.Counter(tracks_.Gpu(use.gpu), name, "MB", level.time_ns,
                  static_cast<double>(level.*bytes) / 1e6);
  };
  for (size_t i = 0; i < use.levels.size() && use.levels[i].time_ns < end_ns_;) {
    const uint64_t from_ns = use.levels[i].time_ns;
    size_t highest = i;
    size_t end = i;
    for (; end < use.levels.size() && use.levels[end].time_ns - from_ns < step_ns; ++end) {
      if (use.levels[end].*bytes > use.levels[highest].*bytes) highest = end;
    }
    write(use.levels[highest]);
    if (highest != end - 1) write(use.levels[end - 1]);
    i = end;
  }
}

// Writes NVML's reports unchanged: ten values a second.
void Counters::WriteConditions() {
  std::map<uint32_t, std::vector<const GpuState*>> states;
  for (const GpuState& state : analysis_.GpuStates()) {
    const std::optional<uint32_t> number = analysis_.gpus.NumberOf(state.gpu);
    if (number && state.time_ns < end_ns_) states[*number].push_back(&state);
  }
  const auto write = [&](uint32_t gpu, const std::vector<const GpuState*>& all,
                         std::string_view name, std::string_view unit, auto&& value_of) {
    double before = 0;
    for (const GpuState* state : all) {
      const double value = value_of(*state);
      if (value != before) sink_.Counter(tracks_.Gpu(gpu), name, unit, state->time_ns, value);
      before = value;
    }
  };
  for (const auto& [gpu, all] : states) {
    write(gpu, all, "SM clock", "MHz", [](const GpuState& one) { return double(one.sm_clock); });
    write(gpu, all, "memory clock", "MHz",
          [](const GpuState& one) { return double(one.memory_clock); });
    write(gpu, all, "power", "W", [](const GpuState& one) { return one.power / 1e3; });
    write(gpu, all, "temperature", "C",
          [](const GpuState& one) { return double(one.temperature); });
    write(gpu, all, "memory used", "MB",
          [](const GpuState& one) { return static_cast<double>(one.memory_used_bytes) / 1e6; });
    write(gpu, all, "throttled", "0 or 1",
          [](const GpuState& one) { return IsThrottled(one.throttle_reasons) ? 1.0 : 0.0; });
  }
}

// Hardware counters, as means over bins. Samples of all GPUs are in one list.
void Counters::WriteMetrics() {
  std::map<uint32_t, std::vector<CounterSample>> samples;
  uint64_t begin_ns = ~uint64_t{0};
  uint64_t end_ns = 0;
  for (const GpuMetricSample& event : analysis_.GpuMetricSamples()) {
    if (!analysis_.gpus.NumberOf(event.gpu)) continue;
    const CounterSample sample = SampleOf(analysis_, event);
    if (sample.start_ns >= end_ns_ || sample.end_ns <= sample.start_ns) continue;
    begin_ns = std::min(begin_ns, sample.start_ns);
    end_ns = std::max(end_ns, sample.end_ns);
    samples[event.gpu].push_back(sample);
  }
  if (samples.empty()) return;
  bins_ = TimeBins::Round(begin_ns, end_ns, kMostBins);
  std::map<uint32_t, uint32_t> device_of;
  for (const GpuMetric& metric : analysis_.model.events.gpu_metrics) {
    device_of.try_emplace(metric.metric, metric.gpu);
  }
  for (const auto& [metric, info] : MetricInfos(analysis_)) {
    const auto of_device = samples.find(device_of[metric]);
    if (of_device == samples.end()) continue;
    for (const CounterSample& sample : of_device->second) {
      const uint32_t place = metric - sample.first_metric;
      if (metric < sample.first_metric || place >= sample.values.size()) continue;
      const double value = static_cast<double>(sample.values[place]) * info.factor;
      const auto length = static_cast<double>(sample.end_ns - sample.start_ns);
      bins_->Add(sample.start_ns, sample.end_ns, info.is_bytes ? value : value * length);
    }
    const std::string_view unit = info.unit.empty() ? std::string_view("value") : info.unit;
    Drain(*analysis_.gpus.NumberOf(of_device->first), info.name, unit, 1);
  }
}

uint64_t Counters::Write() {
  WriteMemory();
  WriteConditions();
  WriteMetrics();
  uint64_t begin_ns = ~uint64_t{0};
  uint64_t end_ns = 0;
  for (const GpuWork& work : analysis_.Work()) {
    if (!IsOnGpu(work)) continue;
    begin_ns = std::min({begin_ns, work.start_ns, work.called_ns});
    end_ns = std::max(end_ns, work.end_ns);
  }
  if (begin_ns > end_ns) return bins_ ? bins_->width_ns() : 0;
  bins_ = TimeBins::Round(begin_ns, end_ns, kMostBins);
  WriteBusy();
  WriteCopies();
  WriteQueue();
  return bins_->width_ns();
}

}  // namespace

uint64_t WriteTraceCounters(const Analysis& analysis, uint64_t end_ns, TraceTracks& tracks,
                            TraceSink& sink) {
  return Counters(analysis, end_ns, tracks, sink).Write();
}

}  // namespace xpu
