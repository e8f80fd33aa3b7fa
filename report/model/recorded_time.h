// When a recording ran: how long, without its pauses, and which part of it is here.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"

namespace xpu {

// When the recording began, on CLOCK_MONOTONIC; 0 when the capture does not say.
uint64_t StartOf(const Model& model);
// When it ended or, of a capture without an end, had its last event, CLOCK_MONOTONIC.
uint64_t EndOf(const Model& model);
// From the start of the recording to its end; 0 when the capture does not say.
uint64_t RunTimeNs(const Model& model);
// From the start to the last event on CLOCK_MONOTONIC; 0 when the capture does not say. How much a
// recording without an end holds.
uint64_t RecordedUntilNs(const Model& model);

// A part of a recording, from its start.
struct TimeRange {
  static constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();

  uint64_t start_ns = 0;
  uint64_t end_ns = kNoEnd;  // exclusive

  bool is_all() const { return start_ns == 0 && end_ns == kNoEnd; }
};

// "1.5s-2s", "500ms-", "-2s", "300us-1ms": units s, ms, us, ns; without one: s.
Result<TimeRange> ParseTimeRange(std::string_view text);

// A time of which the capture has no events: shares of time are shares of the rest.
struct Pause {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  StringId cause;
  uint64_t before_ns = 0;  // length of those that are earlier in its list
};

// Makes the list disjoint (intervals.h), and sets before_ns.
void UnitePauses(std::vector<Pause>& pauses);
// In order, none that overlap. Of several captures together none: while one of them paused the
// others did not.
std::vector<Pause> FindPauses(const Model& model);
// Gaps between consecutive recordings, in order.
std::vector<Pause> BetweenRecordings(const Model& model);
// How long of that time was paused; by search, for there may be as many times as pauses.
uint64_t PausedNs(const std::vector<Pause>& pauses, uint64_t start_ns, uint64_t end_ns);
// The factor by which a total of a recording by windows (xpu-record --every) is scaled to estimate
// that of the whole time; 0: it was not by windows, or nothing was recorded.
double WindowScale(const Model& model);
// "802 ms in 4 windows, 20.1 % of the time", for a view that shows totals; empty: no windows.
std::string WindowsNote(const Model& model);
// "3.2 s, 2 pauses (SIGUSR2)", "3.2 s, the rest lies between two recordings"; empty: all is.
std::string RecordedText(const Model& model);

// Describes a part of a recording that was cut into several captures: "part 3 of the recording,
// which goes on in part 4"; empty: it was not cut.
std::string PartsText(const Model& model);
// Returns PartsText as a line of its own; empty also when nothing of the recording is missing.
std::string PartsNote(const Model& model);

}  // namespace xpu
