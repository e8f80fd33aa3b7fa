// The recorder's loop: waits, drains the sources, forwards signals, and switches the recording on
// and off.
#pragma once

#include <cstdint>
#include <optional>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/session/control_fifo.h"
#include "record/session/recording_control.h"
#include "record/session/rotation.h"
#include "record/session/signals.h"
#include "record/session/sources.h"
#include "record/sink/event_sink.h"
#include "record/target/target.h"

namespace xpu {

class EventLoop {
 public:
  struct Parts {
    Target* target = nullptr;  // nullptr: no program was started
    SignalSource& signals;
    RecordingControl& control;
    Rotation& rotation;
    ControlFifo* fifo = nullptr;
    uint64_t begin_ns = 0;        // of the recording: RecordingInfo::start_ns
    bool takes_switches = false;  // SIGUSR2 is for the recorder, not for the program
  };
  explicit EventLoop(const Parts& parts);

  // Runs until the recording is over: the program or all recorded processes have ended, its time is
  // up, or the user asked for the end, for a program that does not follow, twice.
  Status Record(Sources& sources, EventSink& sink);
  bool TargetHasEnded() const;
  // True if the recording ended because the capture reached its size limit.
  bool has_reached_max() const { return has_reached_max_; }
  // Continues to forward signals to the program until it ends. Returns its wait status.
  Result<int> WaitForTarget();

 private:
  Status Watch(int fd) const;
  Status WatchTarget();
  Status WaitMs(int timeout_ms) const;
  void PassSignalsOn(uint64_t now_ns);
  // The signal that is sent to the program instead.
  int SignalFor(int signal) const;
  // After the second request to end the program has kGraceNs; then it is killed.
  void EndIfAsked(uint64_t now_ns);
  bool TargetInGroup() const;
  bool IsOver(Sources& sources) const;
  int IntervalMs(const Sources& sources, uint64_t now_ns) const;
  // Returns true if the line is a command.
  bool HandleCommand(const ControlFifo::Line& line);
  // At once, for a recording may go on for days; the first time only.
  void ReportFailedWrite(const EventSink& sink);
  // Begins a new part, or ends the recording, if the capture is large enough.
  void EnforceSizeLimit(Sources& sources, EventSink& sink);
  void PollCommands(Sources& sources, EventSink& sink);
  SwitchState Wanted() const;
  // Lets the control decide, then switches the sources as it demands, and records that;
  // `in_program_ns`: the time of the change in the program.
  void Apply(Sources& sources, EventSink& sink, std::optional<uint64_t> in_program_ns = {});
  void SwitchAsWanted(Sources& sources, EventSink& sink, std::optional<uint64_t> in_program_ns);

  static constexpr uint64_t kFlushNs = 900'000'000;  // a killed recorder loses at most a second
  static constexpr uint64_t kGraceNs = 2'000'000'000;
  static constexpr int kMaxComplaints = 10;

  Parts parts_;
  SignalRouter router_;
  UniqueFd epoll_;
  uint64_t kill_at_ns_ = 0;  // 0: not requested twice
  SwitchState switched_;     // as passed to the sources
  bool has_reached_max_ = false;
  bool has_reported_failure_ = false;
  int complaints_ = 0;  // about invalid commands
};

}  // namespace xpu
