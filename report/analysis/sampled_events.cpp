#include "report/analysis/sampled_events.h"

#include <algorithm>
#include <array>

#include "format/base/saturated.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/base/text.h"

namespace xpu {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kDefaultHz = 99;

bool IsTime(const Model& model, const SampleSource& source) {
  return model.Text(source.unit) == "ns";
}

// Finds or adds the event of a source; merged captures have several sources of one, such as
// "cpu-clock".
SampledEvent& EventOf(std::vector<SampledEvent>& events, const Model& model,
                      const SampleSource& source) {
  const std::string_view name = model.Text(source.name);
  const auto known = std::find_if(events.begin(), events.end(),
                                  [&](const SampledEvent& event) { return event.name == name; });
  if (known != events.end()) return *known;
  events.push_back({.name = std::string(name),
                    .is_time = IsTime(model, source),
                    .frequency_hz = source.frequency_hz,
                    .period = source.period,
                    .is_uncounted = IsUncounted(model, source)});
  return events.back();
}

Result<std::string> Choose(const std::vector<SampledEvent>& events, std::string_view name) {
  const auto found = std::find_if(events.begin(), events.end(), [&](const SampledEvent& event) {
    return name.empty() ? event.is_time : event.name == name;
  });
  if (found != events.end()) return found->name;
  if (name.empty()) return events.empty() ? std::string() : events.front().name;
  std::string names;
  for (const SampledEvent& event : events) {
    AppendFormat(names, "{}{}", names.empty() ? "" : ", ", event.name);
  }
  return Error{ErrorKind::kUsage,
               Format("--event {}: the capture has no samples of this event", name),
               names.empty() ? "it has no CPU samples" : "it has samples of " + names};
}

auto SourcesOf(const Model& model, const Selection& shown) {
  return Selected(model.events.sample_sources, shown.events.sample_sources);
}

// Keeps the selected sources that `wanted` wants, with their samples.
template <typename Wanted>
void SelectSources(const Model& model, Selection& shown, Wanted&& wanted) {
  const auto& sources = model.events.sample_sources;
  std::unordered_map<uint32_t, bool> keeps;  // by source; one without a definition stays
  shown.events.sample_sources = EventSet::Where(sources.size(), [&](size_t i) {
    return shown.events.sample_sources.Has(i) &&
           keeps.try_emplace(sources[i].source, wanted(sources[i])).first->second;
  });
  const bool keeps_all =
      std::all_of(keeps.begin(), keeps.end(), [](auto& one) { return one.second; });
  if (keeps_all) return;
  const auto is_kept = [&](const CpuSample& sample) {
    const auto found = keeps.find(sample.source);
    return found == keeps.end() || found->second;
  };
  KeepIf(model.events.cpu_samples, shown.events.cpu_samples, is_kept);
  KeepIf(model.events.cpu_samples, shown.samples_of_sources, is_kept);
}

}  // namespace

std::string SampledEvent::Text() const {
  if (frequency_hz != 0) return Format("{}, {} Hz", name, frequency_hz);
  if (is_time) return Format("{}, every {}", name, HumanDuration(period));
  return period == 1 ? Format("{}, each", name) : Format("{}, every {}", name, period);
}

std::vector<SampledEvent> FindSampledEvents(const Model& model, const Selection& shown) {
  std::vector<SampledEvent> events;
  std::unordered_map<uint32_t, size_t> of_source;
  for (const SampleSource& source : SourcesOf(model, shown)) {
    SampledEvent& event = EventOf(events, model, source);
    of_source.try_emplace(source.source, static_cast<size_t>(&event - events.data()));
  }
  const SampleWeights weights(model, shown);
  for (const CpuSample& sample : Selected(model.events.cpu_samples, shown.events.cpu_samples)) {
    const auto found = of_source.find(sample.source);
    if (found == of_source.end()) continue;
    SampledEvent& event = events[found->second];
    ++event.samples;
    event.weight = AddSaturated(event.weight, weights.Of(sample));
  }
  return events;
}

Status SelectEvent(std::string_view name, const Model& model, Selection& shown) {
  XPU_ASSIGN_OR_RETURN(const std::string chosen, Choose(FindSampledEvents(model, shown), name));
  SelectSources(model, shown,
                [&](const SampleSource& source) { return model.Text(source.name) == chosen; });
  return Ok();
}

void SelectOneClock(const Model& model, Selection& shown) {
  const Result<std::string> first = Choose(FindSampledEvents(model, shown), {});
  SelectSources(model, shown, [&](const SampleSource& source) {
    return !IsTime(model, source) || model.Text(source.name) == first.value();
  });
}

bool SamplesCountTime(const Model& model, const Selection& shown) {
  const auto sources = SourcesOf(model, shown);
  return sources.empty() || std::any_of(sources.begin(), sources.end(),
                                        [&](const auto& source) { return IsTime(model, source); });
}

std::string SampleUnitName(const Model& model, const Selection& shown) {
  if (SamplesCountTime(model, shown)) return "ns";
  return ForOneLine(model.Text(SourcesOf(model, shown).front().name));
}

std::string SampleUnit(const Model& model, const Selection& shown) {
  if (SamplesCountTime(model, shown)) return "ns";
  const SampleSource& source = SourcesOf(model, shown).front();
  return IsUncounted(model, source) ? "samples" : ForOneLine(model.Text(source.name));
}

bool IsUncounted(const Model& model, const SampleSource& source) {
  constexpr std::array<std::string_view, 6> kSoftwareEvents = {
      "page-faults",      "minor-faults",   "major-faults",
      "context-switches", "cpu-migrations", "alignment-faults"};
  if (source.frequency_hz == 0) return false;
  std::string_view name = model.Text(source.name);
  name = name.substr(0, name.find_first_of(":/"));  // "page-faults:u"
  return std::find(kSoftwareEvents.begin(), kSoftwareEvents.end(), name) != kSoftwareEvents.end();
}

std::string UncountedText(const Model& model, const Selection& shown) {
  const auto sources = SourcesOf(model, shown);
  if (SamplesCountTime(model, shown) || !IsUncounted(model, sources.front())) return {};
  const std::string name = SampleUnitName(model, shown);
  return Format(
      "{} were sampled at a frequency: the numbers count samples, not events\n"
      "  hint: xpu-record -e {} -c 1 counts each one\n",
      name, name);
}

uint64_t SampleWeightNs(const Model& model, const Selection& shown, uint32_t source) {
  for (const SampleSource& known : SourcesOf(model, shown)) {
    if (known.source != source) continue;
    if (known.period != 0 && model.Text(known.unit) == "ns") return known.period;
    if (known.frequency_hz != 0) return kNsPerSecond / known.frequency_hz;
  }
  return kNsPerSecond / kDefaultHz;
}

uint64_t SampleUnitNs(const Model& model, const Selection& shown) {
  const auto sources = SourcesOf(model, shown);
  const uint64_t unit = SampleWeightNs(model, shown, sources.empty() ? 0 : sources.front().source);
  return unit == 0 ? 1 : unit;
}

SampleWeights::SampleWeights(const Model& model, const Selection& shown)
    : unknown_{.weight = SampleWeightNs(model, shown, 0), .is_time = true} {
  for (const SampleSource& source : SourcesOf(model, shown)) {
    const bool is_time = IsTime(model, source);
    const uint64_t weight = is_time ? SampleWeightNs(model, shown, source.source)
                                    : std::max<uint64_t>(source.period, 1);
    sources_.try_emplace(source.source, Source{weight, is_time, IsUncounted(model, source),
                                               model.Text(source.name)});
  }
}

const SampleWeights::Source& SampleWeights::SourceOf(const CpuSample& sample) const {
  const auto found = sources_.find(sample.source);
  return found == sources_.end() ? unknown_ : found->second;
}

uint64_t SampleWeights::Of(const CpuSample& sample) const {
  const Source& source = SourceOf(sample);
  if (source.is_uncounted) return 1;
  return sample.weight != 0 ? sample.weight : source.weight;
}

}  // namespace xpu
