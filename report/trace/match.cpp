#include "report/trace/match.h"

#include <string>
#include <utility>

#include "format/base/text.h"
#include "report/model/recorded_time.h"

namespace xpu {

std::string_view MatchText(MatchKind match) {
  switch (match) {
    case MatchKind::kNone:
      break;
    case MatchKind::kById:
      return "by id";
    case MatchKind::kByIdAndTime:
      return "by id and time";
    case MatchKind::kByNesting:
      return "by nesting";
    case MatchKind::kByTime:
      return "by time";
  }
  return "not matched";
}

Result<CorrelateOptions> ParseCorrelate(std::string_view text) {
  for (const auto& [name, by] : {std::pair("auto", CorrelateBy::kAuto),
                                 {"id", CorrelateBy::kId},
                                 {"nesting", CorrelateBy::kNesting},
                                 {"time", CorrelateBy::kTime}}) {
    if (text == name) return CorrelateOptions{.by = by};
  }
  constexpr std::string_view kWindow = "time:";
  if (text.starts_with(kWindow)) {
    // The window is the range from the call on.
    const Result<TimeRange> range = ParseTimeRange("0-" + std::string(text.substr(kWindow.size())));
    if (range.ok() && range.value().end_ns != TimeRange::kNoEnd) {
      return CorrelateOptions{.by = CorrelateBy::kTime, .window_ns = range.value().end_ns};
    }
  }
  return Error{ErrorKind::kUsage,
               Format("'{}' is not one of auto, id, nesting, time, time:WINDOW", text),
               "WINDOW is a duration, as in time:10ms"};
}

}  // namespace xpu
