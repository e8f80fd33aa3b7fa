#include "record/options/control_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cupti_inject/wire.h"
#include "format/base/number.h"
#include "format/base/text.h"

namespace xpu {
namespace {

Error UsageError(std::string message, std::string hint) {
  return Error{ErrorKind::kUsage, std::move(message), std::move(hint)};
}

struct Unit {
  std::string_view name;
  double ns;
};
constexpr Unit kUnits[] = {{"us", 1e3}, {"ms", 1e6},   {"s", 1e9},
                           {"m", 60e9}, {"h", 3600e9}, {"", 1e9}};
constexpr double kLongestNs = 1e18;  // 31 years

constexpr char kRangeForms[] = "expected cudaProfilerApi, nvtx:NAME or nvtx:NAME@DOMAIN";
constexpr char kControlForms[] = "expected fifo:CTL, fifo:CTL,ACK or signal";

// Takes the text before the first '@' that is not escaped by a backslash, and unescapes it.
std::string TakeRangeName(std::string_view& text) {
  std::string name;
  while (!text.empty() && text.front() != '@') {
    if (text.starts_with("\\@")) text.remove_prefix(1);
    name += text.front();
    text.remove_prefix(1);
  }
  return name;
}

}  // namespace

std::string CaptureRange::Text() const {
  if (is_profiler_api) return "cudaProfilerApi";
  const std::string at = any_domain ? "@*" : domain.empty() ? "" : "@" + domain;
  return "nvtx:" + name + at;
}

Result<uint64_t> ParseDuration(std::string_view option, std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = text.substr(digits);
  const auto found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& known) { return known.name == unit; });
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  const bool is_number = error == std::errc() && end == text.data() + digits;
  if (!is_number || found == std::end(kUnits) || number * found->ns > kLongestNs) {
    return UsageError(Format("{}: invalid duration '{}'", option, text),
                      "expected seconds, or a number with a unit: 10us, 500ms, 5s, 2m, 1h");
  }
  return static_cast<uint64_t>(std::llround(number * found->ns));
}

Status ParseControl(std::string_view text, ControlOptions& options) {
  constexpr std::string_view kFifo = "fifo:";
  if (text == "signal") {
    options.by_signal = true;
    return Ok();
  }
  if (!text.starts_with(kFifo)) {
    return UsageError(Format("--control: invalid value '{}'", text), kControlForms);
  }
  text.remove_prefix(kFifo.size());
  const size_t comma = std::min(text.find(','), text.size());
  const std::string_view ack = text.substr(std::min(comma + 1, text.size()));
  if (comma == 0 || (comma < text.size() && ack.empty())) {
    return UsageError("--control: the FIFO name is missing", kControlForms);
  }
  if (!options.fifo.empty()) {
    return UsageError("--control: only one FIFO can be given", "give --control=fifo: once");
  }
  options.fifo = text.substr(0, comma);
  options.ack_fifo = ack;
  return Ok();
}

Result<CaptureRange> ParseCaptureRange(std::string_view text) {
  constexpr std::string_view kNvtx = "nvtx:";
  CaptureRange range;
  range.is_profiler_api = text == "cudaProfilerApi";
  if (range.is_profiler_api) return range;
  if (!text.starts_with(kNvtx)) {
    return UsageError(Format("--capture-range: invalid value '{}'", text), kRangeForms);
  }
  text.remove_prefix(kNvtx.size());
  range.name = TakeRangeName(text);
  const bool has_domain = !text.empty();
  if (has_domain) text.remove_prefix(1);
  range.any_domain = text == "*";
  if (!range.any_domain) range.domain = text;
  if (range.name.empty() || (has_domain && text.empty())) {
    return UsageError("--capture-range: the name of the range or domain is missing", kRangeForms);
  }
  if (range.name.size() + range.domain.size() + 2 > wire::kCaptureRangeBytes) {
    return UsageError("--capture-range: the name is too long", kRangeForms);
  }
  return range;
}

Result<std::vector<pid_t>> ParsePids(std::string_view list) {
  std::vector<pid_t> pids;
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    const auto pid = ParseNumber<pid_t>(list.substr(0, comma));
    if (!pid || *pid <= 0) {
      return UsageError(Format("-p: invalid process id '{}'", list.substr(0, comma)),
                        "expected numbers separated by commas: -p 1234,1240");
    }
    if (std::find(pids.begin(), pids.end(), *pid) == pids.end()) pids.push_back(*pid);
    if (comma == list.size()) return pids;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace xpu
