// The events that CPU samples were taken at. Each counts something else: views show one at a time.
// Functions are about the sources that `shown` selects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"
#include "report/trace/selection.h"

namespace xpu {

// Sources of one name, of several captures for instance, are one event.
struct SampledEvent {
  std::string name;
  bool is_time = false;       // its unit is ns
  uint64_t frequency_hz = 0;  // as of the first source
  uint64_t period = 0;        // likewise
  uint64_t samples = 0;
  uint64_t weight = 0;
  bool is_uncounted = false;  // as IsUncounted()

  // "cpu-clock, 99 Hz", "page-faults, every 100"
  std::string Text() const;
};

// In the order of their sources, with the samples that are shown.
std::vector<SampledEvent> FindSampledEvents(const Model& model, const Selection& shown);

// Leaves the event `name` alone selected. Empty: the first that counts time, else the first.
// kUsage: the capture has none of that name.
Status SelectEvent(std::string_view name, const Model& model, Selection& shown);
// Keeps only the first of several events that count time; the others are moments, and all stay.
void SelectOneClock(const Model& model, Selection& shown);

// Whether what is left counts time. Without a source it is the clock's.
bool SamplesCountTime(const Model& model, const Selection& shown);
// Returns what the samples count: "ns", "page-faults".
std::string SampleUnitName(const Model& model, const Selection& shown);
// Returns what the numbers that views show count: also "samples", where IsUncounted().
std::string SampleUnit(const Model& model, const Selection& shown);
// Whether samples do not say how often their event came: of a software event at a frequency the
// kernel's periods are far off (34,595 page faults where 6,000 were). Each is a sample then.
bool IsUncounted(const Model& model, const SampleSource& source);
// A sentence about that, for standard error; empty: it is not so.
std::string UncountedText(const Model& model, const Selection& shown);

// Returns the time that one sample of `source` stands for. Sources that do not count time (perf's
// events) weigh by the frequency asked for.
uint64_t SampleWeightNs(const Model& model, const Selection& shown, uint32_t source);
// Returns it for the capture's first source; for the default rate (99 Hz) when it has none.
uint64_t SampleUnitNs(const Model& model, const Selection& shown);

// The weights of samples, in the units of their sources.
class SampleWeights {
 public:
  SampleWeights(const Model& model, const Selection& shown);
  uint64_t Of(const CpuSample& sample) const;
  // The event; it holds as long as the model.
  std::string_view NameOf(const CpuSample& sample) const { return SourceOf(sample).name; }
  bool IsOfTime(const CpuSample& sample) const { return SourceOf(sample).is_time; }

 private:
  struct Source {
    uint64_t weight = 0;
    bool is_time = false;
    bool is_uncounted = false;
    std::string_view name = "[unknown]";
  };
  const Source& SourceOf(const CpuSample& sample) const;

  std::unordered_map<uint32_t, Source> sources_;
  Source unknown_;
};

}  // namespace xpu
