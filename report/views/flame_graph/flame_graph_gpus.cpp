#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/base/time_bins.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_metrics.h"
#include "report/views/flame_graph/flame_graph_strip.h"

namespace xpu {
namespace {

// A picture has room for as many bars; a page is not to become large by them.
constexpr uint64_t kParts = 240;
constexpr SlicedTimes::Limits kLimits{.parts = size_t{1} << 17, .slices = kParts};
// Lanes of more GPUs would leave no room for the graph.
constexpr size_t kMostGpus = 4;
// No recording has later times; damaged captures may.
constexpr uint64_t kLatestNs = UINT64_MAX / 4;

struct Span {
  uint64_t from_ns = UINT64_MAX;
  uint64_t to_ns = 0;

  void Add(uint64_t begin_ns, uint64_t end_ns) {
    from_ns = std::min(from_ns, begin_ns);
    to_ns = std::max(to_ns, end_ns);
  }
};

// A value over time, by equal bins.
struct ValueBins {
  TimeBins values;     // times their duration
  TimeBins durations;  // in which there is a value

  // `value` holds from one time to the other.
  void Add(uint64_t begin_ns, uint64_t end_ns, double value) {
    if (begin_ns >= end_ns) return;
    const auto length = static_cast<double>(end_ns - begin_ns);
    values.Add(begin_ns, end_ns, value * length);
    durations.Add(begin_ns, end_ns, length);
  }
};

// Which GPUs are shown, by their number.
std::vector<GpuConditions> ShownGpus(const Analysis& analysis) {
  std::vector<GpuConditions> gpus = FindGpuConditions(analysis);
  std::erase_if(gpus, [](const GpuConditions& one) { return !one.gpu.number; });
  return gpus;
}

class GpuLanes {
 public:
  GpuLanes(const Analysis& analysis, uint64_t from_ns, uint64_t bin_ns, size_t count)
      : analysis_(analysis), from_ns_(from_ns), bin_ns_(bin_ns), count_(count) {}

  // How many GPUs have no room.
  size_t Add(FlameStrip& strip, std::optional<uint32_t> first_slice) {
    const std::vector<GpuBusy> busy = FindGpuBusy(analysis_);
    std::map<uint32_t, GpuConditions> gpus;
    for (GpuConditions& one : ShownGpus(analysis_)) gpus[*one.gpu.number] = std::move(one);
    for (const GpuBusy& one : busy) gpus[one.gpu];
    ReadCounters();
    size_t shown = 0;
    for (const auto& [number, conditions] : gpus) {
      if (shown++ == kMostGpus) break;
      const size_t first_lane = strip.lanes.size();
      for (const GpuBusy& one : busy) {
        if (one.gpu == number) AddBusy(one, strip);
      }
      AddCounters(number, strip);
      AddConditions(number, conditions, strip);
      for (size_t i = first_lane; i < strip.lanes.size(); ++i) {
        strip.lanes[i].name = Format("GPU {} {}", number, strip.lanes[i].name);
        strip.lanes[i].first_slice = first_slice;
      }
    }
    return gpus.size() - std::min(gpus.size(), kMostGpus);
  }

 private:
  TimeBins NewBins() const { return {from_ns_, bin_ns_, count_}; }

  // The means over the time in which there is a value; 0 where there is none.
  std::vector<double> MeansOf(ValueBins bins) const {
    std::vector<double> means(count_);
    bins.values.Drain([&](size_t i, double sum) { means[i] = sum; });
    std::vector<double> durations(count_);
    bins.durations.Drain([&](size_t i, double duration) { durations[i] = duration; });
    for (size_t i = 0; i < count_; ++i) means[i] = durations[i] > 0 ? means[i] / durations[i] : 0;
    return means;
  }

  void AddLane(std::string name, std::string unit, std::vector<double> values, double top,
               FlameStrip& strip) const {
    StripLane lane{.name = std::move(name),
                   .unit = std::move(unit),
                   .bars = {},
                   .values = std::move(values),
                   .top = top};
    for (size_t i = 0; i < count_; ++i) {
      lane.bars.push_back({from_ns_ + i * bin_ns_, from_ns_ + (i + 1) * bin_ns_});
    }
    if (lane.top <= 0) lane.top = *std::max_element(lane.values.begin(), lane.values.end());
    strip.lanes.push_back(std::move(lane));
  }

  void AddBusy(const GpuBusy& gpu, FlameStrip& strip) const {
    TimeBins bins = NewBins();
    for (const BusySpan& span : gpu.spans) {
      bins.Add(span.start_ns, span.end_ns, static_cast<double>(span.end_ns - span.start_ns));
    }
    std::vector<double> shares(count_);
    bins.Drain([&](size_t i, double busy_ns) {
      shares[i] = 100 * busy_ns / static_cast<double>(bin_ns_);
    });
    AddLane("busy", "%", std::move(shares), 100, strip);
  }

  // Counters that say how well a GPU is used.
  struct CounterLane {
    std::string_view name;
    std::vector<std::string_view> metrics;  // added up
  };
  static std::vector<CounterLane> CounterLanes() {
    return {{"SM active", {"sm_active"}},
            {"tensor cores", {"tensor_active"}},
            {"DRAM", {"dram_read", "dram_write"}}};
  }
  // A metric of a GPU.
  struct Counter {
    uint32_t gpu = 0;  // its number
    MetricInfo info;
    ValueBins bins;
  };

  // All in one pass: a recording may have millions of samples.
  void ReadCounters() {
    const std::map<uint32_t, MetricInfo> infos = MetricInfos(analysis_);
    for (const GpuMetric& metric : analysis_.model.events.gpu_metrics) {
      const auto info = infos.find(metric.metric);
      const std::optional<uint32_t> gpu = analysis_.gpus.NumberOf(metric.gpu);
      if (info == infos.end() || !gpu) continue;
      for (const CounterLane& lane : CounterLanes()) {
        const auto& names = lane.metrics;
        if (std::find(names.begin(), names.end(), info->second.name) == names.end()) continue;
        counters_.try_emplace(metric.metric, Counter{*gpu, info->second, {NewBins(), NewBins()}});
      }
    }
    if (counters_.empty()) return;
    for (const GpuMetricSample& event : analysis_.GpuMetricSamples()) {
      const CounterSample sample = SampleOf(analysis_, event);
      if (sample.end_ns <= sample.start_ns) continue;
      const auto length = static_cast<double>(sample.end_ns - sample.start_ns);
      const uint64_t end = uint64_t{sample.first_metric} + sample.values.size();
      for (auto of = counters_.lower_bound(sample.first_metric);
           of != counters_.end() && of->first < end; ++of) {
        const MetricInfo& info = of->second.info;
        const uint64_t stored = sample.values[of->first - sample.first_metric];
        const double value = static_cast<double>(stored) * info.factor;
        of->second.bins.Add(sample.start_ns, sample.end_ns, info.is_bytes ? value / length : value);
      }
    }
  }

  void AddCounters(uint32_t number, FlameStrip& strip) const {
    for (const CounterLane& lane : CounterLanes()) AddCounter(number, lane, strip);
  }

  void AddCounter(uint32_t number, const CounterLane& lane, FlameStrip& strip) const {
    std::vector<const Counter*> counters;
    bool is_share = true;  // of a peak that is known
    for (const auto& [metric, counter] : counters_) {
      const auto& names = lane.metrics;
      if (counter.gpu != number || counter.bins.durations.empty() ||
          std::find(names.begin(), names.end(), counter.info.name) == names.end()) {
        continue;
      }
      counters.push_back(&counter);
      if (counter.info.is_bytes && counter.info.peak_per_ns <= 0) is_share = false;
    }
    if (counters.empty()) return;
    std::vector<double> sums(count_);
    for (const Counter* counter : counters) {
      const MetricInfo& info = counter->info;
      const std::vector<double> means = MeansOf(counter->bins);
      const double factor = info.is_bytes && is_share ? 100 / info.peak_per_ns : 1;
      for (size_t i = 0; i < count_; ++i) sums[i] += means[i] * factor;
    }
    // Bytes in a nanosecond are GB in a second.
    AddLane(std::string(lane.name), is_share ? "%" : "GB/s", std::move(sums), is_share ? 100 : 0,
            strip);
  }

  void AddConditions(uint32_t number, const GpuConditions& conditions, FlameStrip& strip) const {
    std::vector<GpuState> states;
    for (const GpuState& state : analysis_.GpuStates()) {
      if (analysis_.gpus.NumberOf(state.gpu) == number) states.push_back(state);
    }
    const GpuDevice* device = conditions.gpu.device;
    const double power_limit = device == nullptr ? 0 : device->power_limit / 1e3;
    const double top_clock = device == nullptr ? 0 : device->max_sm_clock;
    AddState(
        "power", "W", states, power_limit, [](const GpuState& one) { return one.power / 1e3; },
        strip);
    AddState(
        "SM clock", "MHz", states, top_clock,
        [](const GpuState& one) { return static_cast<double>(one.sm_clock); }, strip);
    AddState(
        ThrottleName(conditions), "%", states, 100,
        [](const GpuState& one) { return IsThrottled(one.throttle_reasons) ? 100.0 : 0.0; }, strip);
  }

  // With what mostly held the clock down.
  static std::string ThrottleName(const GpuConditions& conditions) {
    const ThrottleTime* most = nullptr;
    for (const ThrottleTime& time : conditions.throttled) {
      if (time.is_idle || time.samples == 0) continue;
      if (most == nullptr || time.samples > most->samples) most = &time;
    }
    return most == nullptr ? "throttled" : Format("throttled: {}", most->reason);
  }

  // Nothing where all values are 0: not known, or none.
  void AddState(std::string name, std::string unit, const std::vector<GpuState>& states, double top,
                const std::function<double(const GpuState&)>& value_of, FlameStrip& strip) const {
    const bool has_any = std::any_of(states.begin(), states.end(),
                                     [&](const GpuState& one) { return value_of(one) > 0; });
    if (!has_any) return;
    ValueBins bins{NewBins(), NewBins()};
    for (size_t i = 0; i < states.size(); ++i) {
      const uint64_t start_ns = states[i].time_ns;
      bins.Add(start_ns, start_ns + LastsNs(states, i), value_of(states[i]));
    }
    if (bins.durations.empty()) return;
    AddLane(std::move(name), std::move(unit), MeansOf(std::move(bins)), top, strip);
  }

  const Analysis& analysis_;
  const uint64_t from_ns_;
  const uint64_t bin_ns_;
  const size_t count_;
  std::map<uint32_t, Counter> counters_;  // by metric
};

}  // namespace

TimeSlices PartsOfGpuTime(const Analysis& analysis) {
  Span span;
  for (const GpuState& state : analysis.GpuStates()) {
    if (analysis.gpus.NumberOf(state.gpu)) span.Add(state.time_ns, state.time_ns);
  }
  for (const GpuMetricSample& event : analysis.GpuMetricSamples()) {
    if (!analysis.gpus.NumberOf(event.gpu)) continue;
    const CounterSample sample = SampleOf(analysis, event);
    span.Add(sample.start_ns, sample.end_ns);
  }
  if (span.to_ns == 0) return {};
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    if (!gpu.spans.empty()) span.Add(gpu.spans.front().start_ns, gpu.spans.back().end_ns);
  }
  // Counters are sampled for a while before the recording begins and after its end.
  const uint64_t start_ns = StartOf(analysis.model);
  span.from_ns = std::max(span.from_ns, start_ns);
  if (const uint64_t run_ns = RunTimeNs(analysis.model); run_ns > 0) {
    span.to_ns = std::min(span.to_ns, AddSaturated(start_ns, run_ns));
  }
  if (span.to_ns <= span.from_ns || span.to_ns > kLatestNs) return {};
  TimeSlices parts;
  const uint64_t part_ns = (span.to_ns - span.from_ns) / kParts + 1;
  for (uint64_t begin_ns = span.from_ns; begin_ns < span.to_ns; begin_ns += part_ns) {
    parts.push_back({begin_ns, begin_ns + part_ns, static_cast<uint32_t>(parts.size())});
  }
  return parts;
}

SlicedTimes SliceByParts(const TimeSlices& parts) { return SlicedTimes::ByTime(parts, kLimits); }

FlameStrip StripOfParts(const Analysis& analysis, const TimeSlices& parts,
                        const SlicedTimes& sliced) {
  FlameStrip strip{.from_ns = parts.front().start_ns, .to_ns = parts.back().end_ns, .lanes = {}};
  strip.parts = sliced.Parts();
  strip.each = sliced.each();
  const bool can_choose = !strip.parts.empty();
  const uint64_t bin_ns = (parts.front().end_ns - parts.front().start_ns) * strip.each;
  const size_t count = (parts.size() + strip.each - 1) / strip.each;
  GpuLanes lanes(analysis, strip.from_ns, bin_ns, count);
  const size_t left_out = lanes.Add(strip, can_choose ? std::optional<uint32_t>(0) : std::nullopt);
  strip.to_ns = strip.from_ns + bin_ns * count;
  if (!can_choose) return strip;
  strip.what = "part";
  strip.slices = static_cast<uint32_t>(count);
  strip.text = Format("the time of the GPUs in {} parts of {}", parts.size(),
                      HumanDuration(bin_ns / strip.each));
  if (left_out > 0)
    AppendFormat(strip.text, "; {} not shown", Counted(left_out, "more GPU is", "more GPUs are"));
  return strip;
}

void AddGpuLanes(const Analysis& analysis, FlameStrip& strip) {
  if (PartsOfGpuTime(analysis).empty()) return;
  if (strip.to_ns <= strip.from_ns || strip.to_ns > kLatestNs) return;
  const uint64_t bin_ns = (strip.to_ns - strip.from_ns) / kParts + 1;
  const size_t count = (strip.to_ns - strip.from_ns + bin_ns - 1) / bin_ns;
  GpuLanes lanes(analysis, strip.from_ns, bin_ns, count);
  const size_t left_out = lanes.Add(strip, std::nullopt);
  if (left_out > 0)
    AppendFormat(strip.text, "; {} not shown", Counted(left_out, "more GPU is", "more GPUs are"));
}

}  // namespace xpu
