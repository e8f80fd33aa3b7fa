// When a recording is on and what it records, as the command line says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

// What of the program opens and closes the recording.
struct CaptureRange {
  bool is_profiler_api = false;  // cudaProfilerStart and cudaProfilerStop; else ranges of NVTX
  std::string name;              // of such a range
  std::string domain;            // its domain; empty: the default one
  bool any_domain = false;

  // As the command line has it, for people.
  std::string Text() const;
};

struct ControlOptions {
  uint64_t delay_ns = 0;
  bool waits_for_enable = false;        // --delay=-1
  std::optional<uint64_t> duration_ns;  // from when the recording is on first
  bool by_signal = false;               // SIGUSR2
  std::string fifo;                     // of commands; empty: none
  std::string ack_fifo;                 // empty: commands are not acknowledged
  std::optional<CaptureRange> capture_range;
  uint64_t max_bytes = 0;  // of the capture, in all its parts; 0: no limit
  std::string note;        // what may not be meant; empty: nothing

  bool StartsPaused() const { return delay_ns != 0 || waits_for_enable || capture_range; }
  // There may be times in which nothing is recorded.
  bool CanPause() const {
    return delay_ns != 0 || waits_for_enable || by_signal || !fifo.empty() || capture_range;
  }
  // The recording may end before the program.
  bool CanEndEarly() const { return duration_ns || !fifo.empty() || max_bytes != 0; }
};

// Errors of all of these are of ErrorKind::kUsage.

// "5", "5s", "0.5s", "500ms", "2m": a number without a unit is seconds.
Result<uint64_t> ParseDuration(std::string_view option, std::string_view text);
// "fifo:CTL[,ACK]" or "signal".
Status ParseControl(std::string_view text, ControlOptions& options);
// "cudaProfilerApi", "nvtx:NAME", "nvtx:NAME@DOMAIN"; a backslash before an @ makes it part of the
// name.
Result<CaptureRange> ParseCaptureRange(std::string_view text);
// "12,34"
Result<std::vector<pid_t>> ParsePids(std::string_view list);

}  // namespace xpu
