#include "record/session/recording_control.h"

#include <algorithm>

namespace xpu {
namespace {

constexpr std::string_view kWindows = "--every";

uint64_t Later(uint64_t time_ns, uint64_t by_ns) {
  return by_ns > RecordingControl::kNever - time_ns ? RecordingControl::kNever : time_ns + by_ns;
}

}  // namespace

RecordingControl::RecordingControl(const ControlOptions& options, uint64_t start_ns) {
  if (options.duration_ns) duration_ns_ = *options.duration_ns;
  if (options.delay_ns != 0) delay_until_ns_ = Later(start_ns, options.delay_ns);
  user_on_ = !options.UserStartsPaused();
  range_open_ = !options.capture_range;
  cause_ = user_on_ ? "--capture-range" : "--delay";
  if (options.window_ns != 0) {
    every_ns_ = options.every_ns;
    window_ns_ = options.window_ns;
    next_window_ns_ = start_ns;
    cause_ = kWindows;
  }
  Advance(start_ns);
}

void RecordingControl::SetUser(bool on, std::string_view cause) {
  delay_until_ns_ = kNever;  // an earlier command overrides the delay
  if (user_on_ == on) return;
  user_on_ = on;
  cause_ = cause;
}

void RecordingControl::Enable(std::string_view cause) { SetUser(true, cause); }

void RecordingControl::Disable(std::string_view cause) { SetUser(false, cause); }

void RecordingControl::SetRange(bool is_open, std::string_view cause) {
  if (range_open_ == is_open) return;
  range_open_ = is_open;
  cause_ = cause;
}

void RecordingControl::AdvanceWindow(uint64_t now_ns, bool is_ready) {
  if (user_on_ && now_ns >= change_ns_) {
    SetUser(false, kWindows);
    change_ns_ = kNever;
  } else if (begins_ && (is_ready || now_ns >= change_ns_)) {
    begins_ = false;
    const bool is_cut = Later(now_ns, window_ns_) > end_ns_;
    if (!is_cut) SetUser(true, kWindows);
    change_ns_ = is_cut ? kNever : Later(now_ns, window_ns_);
  }
  if (user_on_ || begins_ || now_ns < next_window_ns_) return;
  if (Later(now_ns, window_ns_) > end_ns_) {
    next_window_ns_ = kNever;
    return;
  }
  begins_ = true;
  change_ns_ = Later(now_ns, kReadyPatienceNs);
  // One that would have begun while the recorder did not run is left out.
  const uint64_t missed = (now_ns - next_window_ns_) / every_ns_;
  next_window_ns_ = Later(next_window_ns_, (missed + 1) * every_ns_);
}

void RecordingControl::Advance(uint64_t now_ns, bool is_ready) {
  if (now_ns >= delay_until_ns_) SetUser(true, "--delay");
  if (window_ns_ != 0) AdvanceWindow(now_ns, is_ready);
  if (is_on() && !began_) {
    began_ = true;
    end_ns_ = Later(now_ns, duration_ns_);
  }
  if (now_ns >= end_ns_) is_over_ = true;
}

uint64_t RecordingControl::NextNs() const {
  const uint64_t window_ns = user_on_ || begins_ ? change_ns_ : next_window_ns_;
  return std::min({delay_until_ns_, end_ns_, window_ns});
}

}  // namespace xpu
