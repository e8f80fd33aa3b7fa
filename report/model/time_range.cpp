#include "report/model/time_range.h"

#include <charconv>
#include <optional>
#include <system_error>

#include "format/base/text.h"

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

}  // namespace

Result<TimeRange> ParseTimeRange(std::string_view text) {
  const auto fail = [&](std::string_view why) {
    return Error{ErrorKind::kUsage, Format("'{}' {}", text, why), "as in 1.5s-2s, 300ms-, -800us"};
  };
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || text.size() == 1) return fail("is no FROM-TO");
  TimeRange range;
  if (dash > 0) {
    const auto begin_ns = ParseTime(text.substr(0, dash));
    if (!begin_ns) return fail("does not begin with a time");
    range.begin_ns = *begin_ns;
  }
  if (dash + 1 < text.size()) {
    const auto end_ns = ParseTime(text.substr(dash + 1));
    if (!end_ns) return fail("does not end with a time");
    range.end_ns = *end_ns;
  }
  if (range.end_ns <= range.begin_ns) return fail("ends before it begins");
  return range;
}

}  // namespace xpu
