#include "report/model/recorded_time.h"

#include <algorithm>
#include <optional>
#include <set>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "report/model/run_time.h"
#include "report/output/text.h"

namespace xpu {

std::vector<Pause> FindPauses(const Model& model) {
  const auto& events = model.events;
  std::vector<Pause> pauses;
  if (events.recording_info.size() != 1) return pauses;
  const uint64_t begin_ns = StartOf(model);
  const uint64_t end_ns = begin_ns + std::min(RunTimeNs(model), UINT64_MAX - begin_ns);
  std::optional<Pause> open;
  for (const RecordingSwitch& change : events.recording_switches) {
    const uint64_t time_ns = std::clamp(change.time_ns, begin_ns, end_ns);
    if (!change.is_on && !open) open = Pause{time_ns, end_ns, change.cause};
    if (!change.is_on || !open) continue;
    open->end_ns = std::max(time_ns, open->start_ns);
    pauses.push_back(*open);
    open.reset();
  }
  if (open) pauses.push_back(*open);
  return pauses;
}

std::vector<Pause> BetweenRecordings(const Model& model) {
  std::vector<Pause> between;
  uint64_t until_ns = 0;
  for (const MergedCapture& capture : model.captures) {  // in order of their start
    const uint64_t start_ns = capture.info.start_ns;
    if (until_ns != 0 && start_ns > until_ns) between.push_back({until_ns, start_ns, {}});
    until_ns = std::max(until_ns, capture.until_ns);
  }
  return between;
}

uint64_t PausedNs(const std::vector<Pause>& pauses, uint64_t start_ns, uint64_t end_ns) {
  auto pause = std::upper_bound(pauses.begin(), pauses.end(), start_ns,
                                [](uint64_t time, const Pause& one) { return time < one.end_ns; });
  uint64_t paused_ns = 0;
  for (; pause != pauses.end() && pause->start_ns < end_ns; ++pause) {
    const uint64_t from_ns = std::max(pause->start_ns, start_ns);
    paused_ns += std::max(std::min(pause->end_ns, end_ns), from_ns) - from_ns;
  }
  return paused_ns;
}

std::string RecordedText(const Model& model) {
  const std::vector<Pause> pauses = FindPauses(model);
  const uint64_t run_ns = RunTimeNs(model);
  if (const uint64_t between_ns = PausedNs(BetweenRecordings(model), 0, UINT64_MAX)) {
    return Format("{}, the rest lies between two recordings",
                  HumanDuration(run_ns - std::min(run_ns, between_ns)));
  }
  if (pauses.empty()) return {};
  const uint64_t paused_ns = PausedNs(pauses, 0, UINT64_MAX);
  std::set<std::string> causes;
  for (const Pause& pause : pauses) causes.emplace(model.Text(pause.cause));
  std::string text =
      Format("{}, {} {} (", HumanDuration(run_ns - std::min(run_ns, paused_ns)),
             WithThousands(pauses.size()), ForCount(pauses.size(), "{pause|pauses}"));
  for (const std::string& cause : causes) {
    AppendFormat(text, "{}{}", cause == *causes.begin() ? "" : ", ", cause);
  }
  return text + ")";
}

}  // namespace xpu
