#include "record/options/cpu_events.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include <unistd.h>

#include "format/base/nearest_names.h"
#include "format/base/number.h"
#include "format/base/text.h"
#include "record/kernel/perf_event.h"

namespace xpu {
namespace {

struct KnownEvent {
  std::string_view name;
  std::string_view alias;
  uint32_t type;
  uint64_t config;
};

constexpr KnownEvent kKnown[] = {
    {"cpu-clock", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"alignment-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"cycles", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
};

bool IsClock(const KnownEvent& event) {
  return event.type == PERF_TYPE_SOFTWARE &&
         (event.config == PERF_COUNT_SW_CPU_CLOCK || event.config == PERF_COUNT_SW_TASK_CLOCK);
}

Error UsageError(std::string_view text, std::string_view why, std::string hint) {
  return Error{ErrorKind::kUsage, Format("-e {}: {}", text, why), std::move(hint)};
}

Error UnknownEvent(std::string_view text, std::string_view name) {
  std::vector<std::string> names;
  for (const KnownEvent& known : kKnown) names.emplace_back(known.name);
  const std::string near = NearestNames(names, name);
  return UsageError(text, Format("unknown event '{}'", name),
                    near.empty() ? "xpu-record --check lists the events of this machine"
                                 : Format("did you mean {}?", near));
}

CpuEvent ToEvent(const KnownEvent& known) {
  CpuEvent event;
  event.type = known.type;
  event.config = known.config;
  event.is_clock = IsClock(known);
  return event;
}

std::optional<CpuEvent> FindEvent(std::string_view name) {
  for (const KnownEvent& known : kKnown) {
    if (name == known.name || (!name.empty() && name == known.alias)) return ToEvent(known);
  }
  if (!name.starts_with('r')) return std::nullopt;
  const auto config = ParseNumber<uint64_t>(name.substr(1), 16);
  if (!config) return std::nullopt;
  CpuEvent event;
  event.type = PERF_TYPE_RAW;
  event.config = *config;
  event.is_clock = false;
  return event;
}

// With modifiers, only the named parts (user, kernel) are counted.
bool ParseModifiers(std::string_view modifiers, CpuEvent& event) {
  if (modifiers.find_first_not_of("uk") != std::string_view::npos) return false;
  const bool user = modifiers.find('u') != std::string_view::npos;
  const bool kernel = modifiers.find('k') != std::string_view::npos;
  event.exclude_user = kernel && !user;
  event.exclude_kernel = user && !kernel;
  return user || kernel;
}

bool ParsePeriod(std::string_view term, CpuEvent& event) {
  constexpr std::string_view kKey = "period=";
  if (!term.starts_with(kKey)) return false;
  event.period = ParseNumber<uint64_t>(term.substr(kKey.size())).value_or(0);
  return event.period != 0 && event.period <= INT64_MAX;
}

Result<CpuEvent> ParseCpuEvent(std::string_view text) {
  const std::string_view name = text.substr(0, text.find_first_of(":/"));
  std::string_view rest = text.substr(name.size());
  const auto found = FindEvent(name);
  if (!found) return UnknownEvent(text, name);
  CpuEvent event = *found;
  if (rest.starts_with('/')) {
    const size_t end = rest.find('/', 1);
    if (end == std::string_view::npos || !ParsePeriod(rest.substr(1, end - 1), event)) {
      return UsageError(text, "expected period=N between the slashes, with N at least 1",
                        Format("{}/period=1000000/ takes a sample every million", name));
    }
    rest.remove_prefix(end + 1);
  }
  if (rest.starts_with(':')) rest.remove_prefix(1);
  if (!rest.empty() && !ParseModifiers(rest, event)) {
    return UsageError(text, Format("unknown modifier '{}'", rest),
                      Format("{0}:u counts only user code, {0}:k only the kernel", name));
  }
  event.name = rest.empty() ? std::string(name) : Format("{}:{}", name, rest);
  return event;
}

Error WhyNotOpen(const CpuEvent& event, int error_number) {
  const bool is_absent =
      error_number == ENOENT || error_number == EOPNOTSUPP || error_number == ENODEV;
  if (is_absent && event.type != PERF_TYPE_SOFTWARE) {
    return Error{ErrorKind::kUnsupported,
                 Format("{}: this machine has no hardware counters (virtual machine?)", event.name),
                 "use -e cpu-clock; xpu-record --check lists the events of this machine"};
  }
  std::string hint;
  if (error_number == EINVAL) {
    hint = event.type == PERF_TYPE_RAW
               ? "check that this processor has the event"
               : "check that -F is not above the sysctl kernel.perf_event_max_sample_rate";
  } else if (error_number == EACCES || error_number == EPERM) {
    hint = Format(
        "run as root or with CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=1 "
        "(it is {})",
        PerfParanoidLevel());
  }
  return SystemError(Format("perf_event_open({})", event.name), error_number, hint);
}

}  // namespace

Result<std::vector<CpuEvent>> ParseCpuEvents(std::string_view list) {
  std::vector<CpuEvent> events;
  while (true) {
    const size_t comma = list.find(',');
    XPU_ASSIGN_OR_RETURN(CpuEvent event, ParseCpuEvent(list.substr(0, comma)));
    events.push_back(std::move(event));
    if (comma == std::string_view::npos) return events;
    list.remove_prefix(comma + 1);
  }
}

Status CheckNoneTwice(std::span<const CpuEvent> events) {
  const auto key = [](const CpuEvent& event) {
    return std::tuple(event.type, event.config, event.exclude_user, event.exclude_kernel);
  };
  for (auto event = events.begin(); event != events.end(); ++event) {
    const auto twin = std::find_if(events.begin(), event, [&](const CpuEvent& earlier) {
      return key(earlier) == key(*event);
    });
    if (twin == event) continue;
    const std::string as = twin->name == event->name ? "" : Format(" (also as {})", twin->name);
    return UsageError(event->name, Format("given twice{}", as),
                      "give each event once: the samples could not be distinguished");
  }
  return Ok();
}

Result<UniqueFd> OpenCpuEvent(const CpuEvent& event, const CpuEventScope& scope,
                              uint64_t frequency_hz) {
  perf_event_attr attributes = PerfAttributes(event.type, event.config);
  attributes.freq = event.period == 0;
  if (event.period == 0) {
    attributes.sample_freq = frequency_hz;
  } else {
    attributes.sample_period = event.period;
  }
  attributes.exclude_user = event.exclude_user;
  attributes.exclude_kernel = event.exclude_kernel;
  attributes.exclude_idle = event.is_clock;
  attributes.disabled = 1;
  attributes.enable_on_exec = scope.starts_at_exec;
  attributes.inherit = scope.target >= 0;
  attributes.wakeup_events = scope.number;
  UniqueFd fd = OpenPerfEvent(attributes, scope.target, scope.cpu);
  if (!fd) return WhyNotOpen(event, errno);
  return fd;
}

std::string KnownCpuEvents() {
  std::string names;
  for (const KnownEvent& known : kKnown) {
    names += names.empty() ? "" : ",";
    names += known.name;
  }
  return names;
}

CpuEventNames FindCpuEvents() {
  CpuEventNames names;
  for (const KnownEvent& known : kKnown) {
    CpuEvent event = ToEvent(known);
    event.period = 1'000'000;
    const auto opened = OpenCpuEvent(event, {.target = ::getpid()}, 0);
    if (!opened.ok() && names.missing.empty()) names.first_error = opened.error();
    std::string& list = opened.ok() ? names.here : names.missing;
    AppendFormat(list, "{}{}", list.empty() ? "" : ", ", known.name);
  }
  return names;
}

}  // namespace xpu
