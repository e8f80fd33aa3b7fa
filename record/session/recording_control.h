// Determines whether the recording is on and whether it is over, from the requests of the user, the
// clock and the program. It only decides: the caller provides the time and acts.
//
// The recording is on if both agree: the user (--delay, signals, the FIFO, windows of time) and,
// with --capture-range, the program.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "record/options/control_options.h"

namespace xpu {

class RecordingControl {
 public:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  // `start_ns`: when the program starts.
  RecordingControl(const ControlOptions& options, uint64_t start_ns);

  void Enable(std::string_view cause);
  void Disable(std::string_view cause);
  void Toggle(std::string_view cause) { user_on_ ? Disable(cause) : Enable(cause); }
  void Stop() { is_over_ = true; }
  // A range of the program has begun, or the last one has ended.
  void SetRange(bool is_open, std::string_view cause);
  // Applies what is due by now. Called once after the functions above, before those below.
  // `is_ready`: what a window waits for is done (Source::IsStarting), which it does in bounded
  // time.
  void Advance(uint64_t now_ns, bool is_ready = true);

  bool is_on() const { return user_on_ && range_open_; }
  // What the user alone requests; it is passed to the library in the program.
  bool user_on() const { return user_on_; }
  // A window is open or comes as soon as everything is ready; always, without windows.
  bool in_programs() const { return window_ns_ == 0 || user_on_ || begins_; }
  // The cause of the last change.
  const std::string& cause() const { return cause_; }
  bool is_over() const { return is_over_; }
  bool was_ever_on() const { return began_; }
  // The latest time for the next call of Advance.
  uint64_t NextNs() const;

 private:
  static constexpr uint64_t kReadyPatienceNs = 2'000'000'000;

  void SetUser(bool on, std::string_view cause);
  void AdvanceWindow(uint64_t now_ns, bool is_ready);

  uint64_t delay_until_ns_ = kNever;
  uint64_t duration_ns_ = kNever;
  uint64_t end_ns_ = kNever;
  uint64_t every_ns_ = 0;
  uint64_t window_ns_ = 0;            // 0: no windows
  uint64_t next_window_ns_ = kNever;  // when it begins, at the earliest
  uint64_t change_ns_ = kNever;       // the window's end, or the end of waiting for its beginning
  bool begins_ = false;
  bool user_on_ = true;
  bool range_open_ = true;
  bool began_ = false;
  bool is_over_ = false;
  std::string cause_;
};

}  // namespace xpu
