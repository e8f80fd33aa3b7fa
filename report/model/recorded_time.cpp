#include "report/model/recorded_time.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>

#include "format/base/counted.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/base/intervals.h"
#include "report/base/text.h"

namespace xpu {
namespace {

// "1.5s" to nanoseconds.
std::optional<uint64_t> ParseTime(std::string_view text) {
  double number = 0;
  const auto [unit_at, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view unit(unit_at, static_cast<size_t>(text.data() + text.size() - unit_at));
  double scale = 1e9;
  if (unit == "ms") {
    scale = 1e6;
  } else if (unit == "us") {
    scale = 1e3;
  } else if (unit == "ns") {
    scale = 1;
  } else if (!unit.empty() && unit != "s") {
    return std::nullopt;
  }
  const double ns = number * scale + 0.5;
  if (!(ns < 1e18)) return std::nullopt;
  return static_cast<uint64_t>(ns);
}

void AddUp(std::vector<Pause>& pauses) {
  for (size_t i = 1; i < pauses.size(); ++i) {
    const Pause& earlier = pauses[i - 1];
    pauses[i].before_ns = earlier.before_ns + (earlier.end_ns - earlier.start_ns);
  }
}

}  // namespace

void UnitePauses(std::vector<Pause>& pauses) {
  Unite(pauses);
  AddUp(pauses);
}

uint64_t StartOf(const Model& model) {
  const auto& infos = model.events.recording_info;
  return infos.empty() ? 0 : infos.front().start_ns;
}

uint64_t RunTimeNs(const Model& model) {
  const LoadedEvents& events = model.events;
  if (events.recording_info.empty() || events.recording_end.empty()) return 0;
  const uint64_t start_ns = StartOf(model);
  const uint64_t end_ns = events.recording_end.back().time_ns;
  return end_ns - std::min(end_ns, start_ns);
}

uint64_t EndOf(const Model& model) {
  const auto& ends = model.events.recording_end;
  return ends.empty() ? StartOf(model) + RecordedUntilNs(model) : ends.back().time_ns;
}

uint64_t RecordedUntilNs(const Model& model) {
  if (model.events.recording_info.empty()) return 0;
  const uint64_t start_ns = StartOf(model);
  uint64_t last_ns = start_ns;
  // Lists are in order of time.
  const auto see = [&](const auto& list, auto time) {
    if (list.size() > 0) last_ns = std::max(last_ns, list[list.size() - 1].*time);
  };
  see(model.events.process_events, &ProcessEvent::time_ns);
  see(model.events.mappings, &Mapping::time_ns);
  see(model.events.cpu_samples, &CpuSample::time_ns);
  see(model.events.api_calls, &ApiCall::start_ns);
  see(model.events.launch_stacks, &LaunchStack::time_ns);
  see(model.events.probe_hits, &ProbeHit::time_ns);
  see(model.events.off_cpu_waits, &OffCpuWait::end_ns);
  see(model.events.clock_pairs, &ClockPair::after_ns);
  return last_ns - start_ns;
}

Result<TimeRange> ParseTimeRange(std::string_view text) {
  const auto fail = [&](std::string_view why) {
    return Error{ErrorKind::kUsage, Format("'{}': {}", text, why),
                 "examples: 1.5s-2s, 300ms-, -800us"};
  };
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || text.size() == 1) return fail("expected FROM-TO");
  TimeRange range;
  if (dash > 0) {
    const auto begin_ns = ParseTime(text.substr(0, dash));
    if (!begin_ns) return fail("the start is not a valid time");
    range.start_ns = *begin_ns;
  }
  if (dash + 1 < text.size()) {
    const auto end_ns = ParseTime(text.substr(dash + 1));
    if (!end_ns) return fail("the end is not a valid time");
    range.end_ns = *end_ns;
  }
  if (range.end_ns <= range.start_ns) return fail("the end must be after the start");
  return range;
}

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
  AddUp(pauses);
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
  AddUp(between);
  return between;
}

uint64_t PausedNs(const std::vector<Pause>& pauses, uint64_t start_ns, uint64_t end_ns) {
  const auto until = [&](uint64_t ns) -> uint64_t {
    const auto later =
        std::upper_bound(pauses.begin(), pauses.end(), ns,
                         [](uint64_t at, const Pause& one) { return at < one.start_ns; });
    if (later == pauses.begin()) return 0;
    const Pause& last = *std::prev(later);
    return last.before_ns + std::min(ns, last.end_ns) - last.start_ns;
  };
  return end_ns <= start_ns ? 0 : until(end_ns) - until(start_ns);
}

namespace {

struct Windows {
  uint64_t count = 0;
  uint64_t recorded_ns = 0;
  uint64_t whole_ns = 0;
};

// nullopt: the recording was on and off for another reason.
std::optional<Windows> FindWindows(const Model& model, const std::vector<Pause>& pauses) {
  if (pauses.empty()) return std::nullopt;
  const auto is_between = [&](const Pause& pause) { return model.Text(pause.cause) == "--every"; };
  if (!std::all_of(pauses.begin(), pauses.end(), is_between)) return std::nullopt;
  const uint64_t begin_ns = StartOf(model);
  Windows windows{.whole_ns = RunTimeNs(model)};
  windows.recorded_ns =
      windows.whole_ns - std::min(windows.whole_ns, PausedNs(pauses, 0, UINT64_MAX));
  for (const Pause& pause : pauses) windows.count += pause.start_ns > begin_ns ? 1 : 0;
  if (pauses.back().end_ns < begin_ns + windows.whole_ns) ++windows.count;
  return windows;
}

std::string TextOf(const Windows& windows) {
  return Format("{} in {} {}, {:.3g} % of the time", HumanDuration(windows.recorded_ns),
                WithThousands(windows.count), ForCount(windows.count, "{window|windows}"),
                100 * static_cast<double>(windows.recorded_ns) /
                    static_cast<double>(std::max<uint64_t>(windows.whole_ns, 1)));
}

}  // namespace

double WindowScale(const Model& model) {
  const auto windows = FindWindows(model, FindPauses(model));
  if (!windows || windows->recorded_ns == 0) return 0;
  return static_cast<double>(windows->whole_ns) / static_cast<double>(windows->recorded_ns);
}

std::string WindowsNote(const Model& model) {
  const auto windows = FindWindows(model, FindPauses(model));
  if (!windows || windows->recorded_ns == 0) return {};
  return Format("recorded {}: totals of the whole time are about {:.3g} times those shown\n",
                TextOf(*windows), WindowScale(model));
}

std::string RecordedText(const Model& model) {
  const std::vector<Pause> pauses = FindPauses(model);
  if (const auto windows = FindWindows(model, pauses)) return TextOf(*windows) + " (--every)";
  const uint64_t run_ns = RunTimeNs(model);
  if (const uint64_t between_ns = PausedNs(BetweenRecordings(model), 0, UINT64_MAX)) {
    return Format("{}, without the time between recordings",
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

std::string PartsText(const Model& model) {
  const PartRange& parts = model.parts;
  if (parts.first == 0) return {};
  std::string text = parts.first == parts.last
                         ? Format("part {} of the recording", parts.first)
                         : Format("parts {} to {} of the recording", parts.first, parts.last);
  if (parts.missing > 0) AppendFormat(text, ", {} missing in between", parts.missing);
  if (parts.first > 1) text += "; it began in an earlier part";
  if (parts.is_continued) {
    AppendFormat(text, "{} continues in part {}", parts.first > 1 ? " and" : "; it",
                 parts.last + 1);
  }
  return text;
}

std::string PartsNote(const Model& model) {
  const PartRange& parts = model.parts;
  if (parts.first <= 1 && !parts.is_continued) return {};
  return Format("{}: {}\n", ForOneLine(model.path), PartsText(model));
}

}  // namespace xpu
