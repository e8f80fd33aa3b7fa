#include "report/query/gpu_metrics.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "report/analysis/call_tree.h"
#include "report/base/intervals.h"

namespace xpu {

uint64_t LastsNs(const std::vector<GpuState>& states, size_t index) {
  constexpr uint64_t kLongestNs = 1'000'000'000;
  constexpr uint64_t kUsualNs = 100'000'000;
  if (index + 1 == states.size()) return kUsualNs;
  const uint64_t gap_ns = states[index + 1].time_ns - states[index].time_ns;
  return gap_ns > kLongestNs ? kUsualNs : gap_ns;
}

namespace {

// Bits of nvmlClocksEventReasons.
struct Reason {
  uint64_t bit;
  std::string_view name;
  bool is_idle;
  bool is_power;
  bool is_thermal;
};
constexpr Reason kReasons[] = {
    {0x4, "power limit (software)", false, true, false},
    {0x80, "power brake (hardware)", false, true, false},
    {0x20, "temperature (software)", false, false, true},
    {0x40, "temperature (hardware)", false, false, true},
    {0x8, "hardware slowdown (power or temperature)", false, true, true},
    {0x10, "synchronized with other GPUs (sync boost)", false, false, false},
    {0x2, "clocks set by an application", false, false, false},
    {0x100, "clocks set for a display", false, false, false},
    {0x1, "nothing to do", true, false, false},
};
MeasuredGpu MeasuredGpuOf(const Analysis& analysis, uint32_t gpu_device) {
  MeasuredGpu gpu;
  gpu.number = analysis.gpus.NumberOf(gpu_device);
  gpu.device = analysis.gpus.Find(gpu_device);
  if (gpu.device != nullptr) gpu.name = analysis.model.Text(gpu.device->name);
  if (gpu.name.empty()) gpu.name = "[unnamed]";
  return gpu;
}

// GPUs that the recording is about before those that only stand in the same machine.
template <typename OfGpu>
void SortByNumber(std::vector<OfGpu>& all) {
  std::stable_sort(all.begin(), all.end(), [](const OfGpu& a, const OfGpu& b) {
    return std::tuple(!a.gpu.number, a.gpu.number.value_or(0)) <
           std::tuple(!b.gpu.number, b.gpu.number.value_or(0));
  });
  const bool some_used = !all.empty() && all.front().gpu.number.has_value();
  if (some_used) std::erase_if(all, [](const OfGpu& one) { return !one.gpu.number; });
}

uint64_t Growth(uint64_t before, uint64_t after) { return after > before ? after - before : 0; }

GpuConditions ConditionsOf(const MeasuredGpu& gpu, const std::vector<GpuState>& states,
                           bool is_part) {
  GpuConditions sum;
  sum.gpu = gpu;
  sum.samples = states.size();
  sum.from_ns = states.front().time_ns;
  sum.to_ns = states.back().time_ns;
  sum.sm_clock_least = states.front().sm_clock;
  std::array<ThrottleTime, std::size(kReasons)> reasons{};
  double weight = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    const GpuState& state = states[i];
    const uint64_t ns = LastsNs(states, i);
    const bool counts = i + 1 < states.size() || states.size() == 1;
    const double share = counts ? static_cast<double>(ns) : 0;
    weight += share;
    sum.sm_clock += share * state.sm_clock;
    sum.memory_clock += share * state.memory_clock;
    sum.power += share * state.power / 1000;
    sum.temperature += share * state.temperature;
    sum.memory_bytes += share * static_cast<double>(state.memory_used_bytes);
    sum.sm_clock_peak = std::max(sum.sm_clock_peak, state.sm_clock);
    sum.sm_clock_least = std::min(sum.sm_clock_least, state.sm_clock);
    sum.power_peak = std::max(sum.power_peak, static_cast<double>(state.power) / 1000);
    sum.temperature_peak = std::max(sum.temperature_peak, state.temperature);
    sum.memory_bytes_peak = std::max(sum.memory_bytes_peak, state.memory_used_bytes);
    for (size_t r = 0; counts && r < reasons.size(); ++r) {
      if ((state.throttle_reasons & kReasons[r].bit) == 0) continue;
      reasons[r].ns += ns;
      ++reasons[r].samples;
    }
  }
  if (weight > 0) {
    for (double* mean :
         {&sum.sm_clock, &sum.memory_clock, &sum.power, &sum.temperature, &sum.memory_bytes}) {
      *mean /= weight;
    }
  }
  const GpuState& first = states.front();
  const GpuState& last = states.back();
  const auto energy_mj = static_cast<double>(Growth(first.energy, last.energy));
  sum.energy_j = energy_mj / 1000;
  // The counter of energy is exact at both ends of a recording, and up to a second old between
  // them. A sample of power is a mean of the device's own.
  if (is_part) {
    sum.energy_j = sum.power * static_cast<double>(sum.duration_ns()) / 1e9;
  } else if (energy_mj > 0 && sum.duration_ns() > 0) {
    sum.power = energy_mj * 1e6 / static_cast<double>(sum.duration_ns());
  }
  sum.corrected_errors = Growth(first.corrected_errors, last.corrected_errors);
  sum.uncorrected_errors = Growth(first.uncorrected_errors, last.uncorrected_errors);
  const auto counted = [&](std::string_view reason, uint64_t ns, bool is_power) {
    if (ns > 0) sum.throttled.push_back({reason, ns, 0, false, is_power, !is_power});
  };
  counted("power limit (driver's counter)", Growth(first.power_capped, last.power_capped), true);
  counted("temperature (driver's counter)", Growth(first.thermal_capped, last.thermal_capped),
          false);
  for (size_t r = 0; r < reasons.size(); ++r) {
    if (reasons[r].samples == 0) continue;
    sum.throttled.push_back({kReasons[r].name, reasons[r].ns, reasons[r].samples,
                             kReasons[r].is_idle, kReasons[r].is_power, kReasons[r].is_thermal});
  }
  return sum;
}

}  // namespace

double ThrottledShare(const GpuConditions& of, bool ThrottleTime::*kind) {
  uint64_t most_ns = 0;
  for (const ThrottleTime& time : of.throttled) {
    if (time.*kind) most_ns = std::max(most_ns, time.ns);
  }
  if (of.duration_ns() == 0) return 0;
  return std::min(1.0, static_cast<double>(most_ns) / static_cast<double>(of.duration_ns()));
}

namespace {

// ---- which kernel ran during a sample ----------------------------------------------------------

constexpr uint32_t kNoName = ~uint32_t{0};

// Walks the work of one GPU in order of time, once.
class RunningWork {
 public:
  struct Span {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t name = 0;  // a number
  };

  void Add(const Span& span) { spans_.push_back(span); }
  void Sort() { SortByStart(spans_); }

  // The name of what nearly filled this time; kNoName: nothing, or several things did. Times must
  // not go back.
  uint32_t During(uint64_t start_ns, uint64_t end_ns) {
    std::erase_if(active_, [start_ns](const Span& span) { return span.end_ns <= start_ns; });
    for (; next_ < spans_.size() && spans_[next_].start_ns < end_ns; ++next_) {
      if (spans_[next_].end_ns > start_ns) active_.push_back(spans_[next_]);
      // More than any GPU runs at once; then no sample is of one kernel anyway.
      if (active_.size() > kMostAtOnce) active_.pop_back();
    }
    covered_.clear();
    for (const Span& span : active_) {
      if (span.start_ns >= end_ns) continue;
      covered_[span.name] += OverlapNs(span, Interval{start_ns, end_ns});
    }
    const uint64_t all = end_ns - start_ns;
    uint32_t name = kNoName;
    uint64_t others = 0;
    for (const auto& [of, ns] : covered_) {
      if (ns * 10 >= all * 9 && name == kNoName) {
        name = of;
      } else {
        others += ns;
      }
    }
    return others * 10 < all ? name : kNoName;
  }

 private:
  static constexpr size_t kMostAtOnce = 256;

  std::vector<Span> spans_;
  size_t next_ = 0;
  std::vector<Span> active_;
  std::map<uint32_t, uint64_t> covered_;
};

// The work of all GPUs, with a number for each name.
class WorkNames {
 public:
  WorkNames(const Analysis& analysis, const GpuNames& names) {
    std::map<std::string, uint32_t> numbers;
    std::map<StringId, uint32_t> kernels;
    const GpuWorkList& all = analysis.correlation.work;
    for (size_t i = 0; i < all.size(); ++i) {
      const GpuWork& work = all[i];
      if (!work.timed || work.end_ns <= work.start_ns) continue;
      if (work.kind != WorkKind::kKernel && work.kind != WorkKind::kGraph) continue;
      const auto number_of = [&](const std::string& name) {
        const auto [known, is_new] = numbers.try_emplace(name, numbers.size());
        if (is_new) {
          names_.push_back(name);
          is_selected_.push_back(false);
        }
        return known->second;
      };
      uint32_t number = 0;
      if (work.kind == WorkKind::kKernel) {
        const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
        const auto [known, is_new] = kernels.try_emplace(name);
        if (is_new) known->second = number_of(names.KernelName(name));
        number = known->second;
      } else {
        number = number_of(names.Title(work));
      }
      if (analysis.shown.work.Has(i)) is_selected_[number] = true;
      gpus_[work.gpu].Add({work.start_ns, work.end_ns, number});
    }
    for (auto& [gpu, running] : gpus_) running.Sort();
  }

  // kNoName: also what is not selected.
  uint32_t During(uint32_t gpu, uint64_t start_ns, uint64_t end_ns) {
    const auto running = gpus_.find(gpu);
    if (running == gpus_.end() || end_ns <= start_ns) return kNoName;
    const uint32_t name = running->second.During(start_ns, end_ns);
    return name != kNoName && is_selected_[name] ? name : kNoName;
  }
  const std::string& Name(uint32_t number) const { return names_[number]; }

 private:
  std::vector<std::string> names_;
  std::vector<bool> is_selected_;
  std::map<uint32_t, RunningWork> gpus_;
};

// The metrics of a GPU are numbered one after the other.
struct UseOfDevice {
  GpuCounterUse use;
  uint32_t first_metric = 0;
  std::map<uint32_t, KernelMetrics> kernels;  // by number of the name
};

void AddValues(const CounterSample& sample, const UseOfDevice& of, std::vector<MetricSum>& sums) {
  for (size_t i = 0; i < sample.values.size(); ++i) {
    const size_t metric = sample.first_metric - of.first_metric + i;
    if (metric >= sums.size()) return;
    const MetricInfo& info = of.use.metrics[metric];
    sums[metric].Add(info, static_cast<double>(sample.values[i]) * info.factor,
                     sample.end_ns - sample.start_ns);
  }
}

// The key is gpu_device.
std::map<uint32_t, UseOfDevice> DevicesWithCounters(const Analysis& analysis) {
  std::map<uint32_t, UseOfDevice> devices;
  std::map<uint32_t, uint32_t> device_of;
  for (const GpuMetric& metric : analysis.model.events.gpu_metrics) {
    device_of.try_emplace(metric.metric, metric.gpu);
  }
  for (const auto& [number, info] : MetricInfos(analysis)) {
    const uint32_t device = device_of[number];
    const auto [of, is_new] = devices.try_emplace(device);
    if (is_new) {
      of->second.use.gpu = MeasuredGpuOf(analysis, device);
      of->second.first_metric = number;
    }
    // A damaged capture may lack one: those after the gap would be taken for others.
    if (number != of->second.first_metric + of->second.use.metrics.size()) continue;
    of->second.use.metrics.push_back(info);
  }
  for (auto& [device, of] : devices) of.use.sums.resize(of.use.metrics.size());
  return devices;
}

}  // namespace

std::vector<MeasuredGpu> MeasuredGpus(const Analysis& analysis) {
  std::vector<MeasuredGpu> gpus;
  std::set<uint32_t> known;
  for (const GpuDevice& device : analysis.model.events.gpu_devices) {
    if (known.insert(device.gpu).second) gpus.push_back(MeasuredGpuOf(analysis, device.gpu));
  }
  return gpus;
}

std::vector<GpuConditions> FindGpuConditions(const Analysis& analysis) {
  const size_t all_states = analysis.model.events.gpu_states.size();
  const bool is_part = analysis.shown.events.gpu_states.Count(all_states) != all_states;
  std::map<uint32_t, std::vector<GpuState>> states;
  for (const GpuState& state : analysis.GpuStates()) states[state.gpu].push_back(state);
  std::vector<GpuConditions> all;
  for (const auto& [gpu, of_gpu] : states) {
    all.push_back(ConditionsOf(MeasuredGpuOf(analysis, gpu), of_gpu, is_part));
  }
  SortByNumber(all);
  return all;
}

void MetricSum::Add(const MetricInfo& info, double value, uint64_t duration_ns) {
  if (duration_ns == 0) return;
  const auto length = static_cast<double>(duration_ns);
  ++samples;
  ns += duration_ns;
  sum += info.is_bytes ? value : value * length;
  most = std::max(most, info.is_bytes ? value / length : value);
}

std::optional<size_t> GpuCounterUse::Find(std::string_view name) const {
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].name == name) return i;
  }
  return std::nullopt;
}

double GpuCounterUse::PercentOfPeak(size_t metric, const MetricSum& sum) const {
  const MetricInfo& info = metrics[metric];
  if (info.unit == "%") return sum.Average();
  if (!info.is_bytes || info.peak_per_ns <= 0) return -1;
  return 100 * sum.Average() / info.peak_per_ns;
}

std::map<uint32_t, MetricInfo> MetricInfos(const Analysis& analysis) {
  constexpr size_t kMostMetrics = 4096;  // more than a machine full of GPUs counts at once
  std::map<uint32_t, MetricInfo> infos;
  for (const GpuMetric& metric : analysis.model.events.gpu_metrics) {
    if (infos.size() >= kMostMetrics && !infos.contains(metric.metric)) continue;
    const auto [known, is_new] = infos.try_emplace(metric.metric);
    MetricInfo& info = known->second;
    if (metric.peak != 0) info.peak_per_ns = static_cast<double>(metric.peak) / 1e9;
    if (!is_new) continue;
    info.name = analysis.model.Text(metric.name);
    const std::string_view unit = analysis.model.Text(metric.unit);
    info.is_bytes = unit == "bytes";
    info.unit = info.is_bytes ? "GB/s" : std::string(unit);
    info.factor = static_cast<double>(metric.quantum) / 1000;
  }
  return infos;
}

CounterSample SampleOf(const Analysis& analysis, const GpuMetricSample& sample) {
  const ClockFit& clock = analysis.clocks.Of(sample.instance);
  CounterSample on_clock;
  on_clock.gpu_device = sample.gpu;
  on_clock.start_ns = clock.ToMonotonic(sample.start_ns);
  on_clock.end_ns = std::max(on_clock.start_ns, clock.ToMonotonic(sample.end_ns));
  on_clock.first_metric = sample.metric;
  on_clock.values = {sample.value_0, sample.value_1, sample.value_2, sample.value_3,
                     sample.value_4, sample.value_5, sample.value_6, sample.value_7};
  return on_clock;
}

std::vector<GpuCounterUse> FindCounterUse(const Analysis& analysis, bool by_kernel,
                                          const GpuNames& names) {
  std::map<uint32_t, UseOfDevice> devices = DevicesWithCounters(analysis);
  if (devices.empty()) return {};
  std::optional<WorkNames> work;
  if (by_kernel) work.emplace(analysis, names);
  uint32_t name = kNoName;
  for (const GpuMetricSample& event : analysis.GpuMetricSamples()) {
    const auto found = devices.find(event.gpu);
    if (found == devices.end()) continue;
    UseOfDevice& of = found->second;
    const CounterSample sample = SampleOf(analysis, event);
    if (sample.first_metric < of.first_metric) continue;
    AddValues(sample, of, of.use.sums);
    if (!work || !of.use.gpu.number) continue;
    // With more than eight metrics the next event has the same time.
    const bool is_first = sample.first_metric == of.first_metric;
    if (is_first) name = work->During(*of.use.gpu.number, sample.start_ns, sample.end_ns);
    if (name == kNoName) continue;
    KernelMetrics& kernel = of.kernels[name];
    kernel.sums.resize(of.use.metrics.size());
    if (is_first) ++kernel.samples;
    AddValues(sample, of, kernel.sums);
  }
  std::vector<GpuCounterUse> all;
  for (auto& [device, of] : devices) {
    for (auto& [number, kernel] : of.kernels) {
      kernel.name = work->Name(number);
      of.use.kernels.push_back(std::move(kernel));
    }
    std::stable_sort(
        of.use.kernels.begin(), of.use.kernels.end(),
        [](const KernelMetrics& a, const KernelMetrics& b) { return a.samples > b.samples; });
    all.push_back(std::move(of.use));
  }
  SortByNumber(all);
  return all;
}

}  // namespace xpu
