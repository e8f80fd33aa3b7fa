// The recorder while it records: waits, drains the sources, passes signals on, switches the
// recording off and on.
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
    bool takes_switches = false;  // SIGUSR2 is for us, not for the program
  };
  explicit EventLoop(const Parts& parts);

  // Until the recording is over: the program or all recorded processes have ended, its time is up,
  // or the user asked for the end; of a program twice, which did not follow.
  Status Record(Sources& sources, EventSink& sink);
  bool TargetHasEnded() const;
  // It ended because the capture was large enough.
  bool has_reached_max() const { return has_reached_max_; }
  // Goes on passing signals to the program, until it has ended. Returns its wait status.
  Result<int> WaitForTarget();

 private:
  Status Watch(int fd) const;
  Status WatchTarget();
  Status WaitMs(int timeout_ms) const;
  void PassSignalsOn(uint64_t now_ns);
  // What the program is sent for it.
  int SignalFor(int signal) const;
  // The second request to end gives the program kGraceNs; after that it is killed.
  void EndIfAsked(uint64_t now_ns);
  bool TargetInGroup() const;
  bool IsOver(Sources& sources) const;
  int IntervalMs(const Sources& sources, uint64_t now_ns) const;
  // True: it was one.
  bool HandleCommand(const ControlFifo::Line& line);
  // A new part, or the end, where the capture is large enough.
  void EnforceSizeLimit(Sources& sources, EventSink& sink);
  void PollCommands(Sources& sources, EventSink& sink);
  // Makes the sources do what the control says by now, and writes it down; `in_program_ns`: since
  // when it is so in the program.
  void Apply(Sources& sources, EventSink& sink, std::optional<uint64_t> in_program_ns = {});

  static constexpr uint64_t kFlushNs = 900'000'000;  // the capture promises a second
  static constexpr uint64_t kGraceNs = 2'000'000'000;
  static constexpr int kMaxComplaints = 10;

  Parts parts_;
  SignalRouter router_;
  UniqueFd epoll_;
  uint64_t kill_at_ns_ = 0;  // 0: not asked twice
  bool is_on_ = true;        // as the sources know it
  bool user_on_ = true;      // likewise
  bool has_reached_max_ = false;
  int complaints_ = 0;  // about commands that are none
};

}  // namespace xpu
