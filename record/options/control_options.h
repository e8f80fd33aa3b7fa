// When a recording is on and what limits it, as given on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

// What in the program opens and closes the recording.
struct CaptureRange {
  bool is_profiler_api = false;  // cudaProfilerStart and cudaProfilerStop; otherwise NVTX ranges
  std::string name;              // of the NVTX range
  std::string domain;            // of the NVTX range; empty: the default domain
  bool any_domain = false;

  // As written on the command line, for messages.
  std::string Text() const;
};

struct ControlOptions {
  uint64_t delay_ns = 0;
  bool waits_for_enable = false;        // --delay=-1
  std::optional<uint64_t> duration_ns;  // counted from when recording first starts
  uint64_t every_ns = 0;                // from the beginning of a window to that of the next
  uint64_t window_ns = 0;               // how long each is; 0: no windows
  bool by_signal = false;               // SIGUSR2
  std::string fifo;                     // that commands are read from; empty: none
  std::string ack_fifo;                 // empty: commands are not acknowledged
  std::optional<CaptureRange> capture_range;
  uint64_t max_bytes = 0;  // limit for all parts of the capture; 0: none
  std::string note;        // warns of a value that may be a mistake; empty: none

  // Until the user, or a time that the user gave, switches it on.
  bool UserStartsPaused() const { return delay_ns != 0 || waits_for_enable || window_ns != 0; }
  bool StartsPaused() const { return UserStartsPaused() || capture_range; }
  // True if there may be times in which nothing is recorded.
  bool CanPause() const { return StartsPaused() || by_signal || !fifo.empty(); }
  // True if the recording may end before the program.
  bool CanEndEarly() const { return duration_ns || !fifo.empty() || max_bytes != 0; }
};

// All errors below are of ErrorKind::kUsage.

// "5", "5s", "0.5s", "500ms", "2m"; a number without a unit is in seconds.
Result<uint64_t> ParseDuration(std::string_view option, std::string_view text);
// "fifo:CTL[,ACK]" or "signal".
Status ParseControl(std::string_view text, ControlOptions& options);
// "cudaProfilerApi", "nvtx:NAME", "nvtx:NAME@DOMAIN"; a backslash before an @ makes it part of the
// name.
Result<CaptureRange> ParseCaptureRange(std::string_view text);
// "12,34"
Result<std::vector<pid_t>> ParsePids(std::string_view list);

}  // namespace xpu
