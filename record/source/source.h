// The interface of an event source: CPU samples, GPU activity, probes, the processes themselves.
//
// A recording has a list of sources (session/sources.cpp) and treats all of them alike: it opens
// each before the program is forked, arms it before the program's exec, drains it many times a
// second, switches it off and on, and stops it. A source owns its kernel objects, writes events to
// the sink, and counts what it could not record; it never ends the recording once the program runs.
// What sources share is in source_context.h, so that none includes another. Used by the recorder's
// thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/sink/event_sink.h"
#include "record/source/source_context.h"

namespace xpu {

// Whether sources must record.
struct SwitchState {
  bool is_on = true;
  bool user_on = true;  // may be true although the program is in no capture range
  // Whether the library is in programs that were attached to: not between windows (--every), and
  // shortly before one, so that it begins for all of them at once.
  bool in_programs = true;

  bool operator==(const SwitchState&) const = default;
};

// The recorded programs have entered a capture range, or have left the last one.
struct RangeChange {
  uint64_t time_ns = 0;
  bool is_open = false;
  std::string cause;
};

class Source {
 public:
  // The longest time between drains, unless a source needs a shorter one: BPF rings wake nobody.
  static constexpr int kUsualIntervalMs = 25;

  virtual ~Source() = default;

  // Called between the program's fork and its exec; the scope contains it by then.
  virtual Status Arm() { return Ok(); }
  // Called when the capture is open: writes events that describe the source, and what existed
  // before. May take a while; what happens meanwhile is not missed.
  virtual void Begin(EventSink& /*sink*/) {}
  // Reads from the running program what the kernel does not report.
  virtual void AfterExec(EventSink& /*sink*/) {}
  virtual void Switch(const SwitchState& /*wanted*/) {}
  // Takes what is available now, also while switched off.
  virtual void Drain(EventSink& sink) = 0;
  // Called about once a second: counts losses that happened elsewhere.
  virtual void CountLosses(EventSink& /*sink*/) {}
  // A part of the capture ends: writes what has only been summed up.
  virtual void BeforeNextPart(EventSink& /*sink*/) {}
  // The recording is over: takes everything that is left. `may_go_on`: processes that still run are
  // not counted as lost.
  virtual void Stop(EventSink& /*sink*/, bool /*may_go_on*/) {}

  // Descriptors to wait on.
  virtual std::vector<int> fds() const { return {}; }
  // The latest time for the next drain.
  virtual int DrainIntervalMs(uint64_t /*now_ns*/) const { return kUsualIntervalMs; }
  // Capture ranges that programs have entered or left since the last call.
  virtual std::vector<RangeChange> TakeRangeChanges() { return {}; }
  // True while something that Begin has started in programs takes longer. The source is drained
  // meanwhile; the recording counts from the end of it, but does not wait without limit.
  virtual bool IsStarting() const { return false; }
  // True if nothing is left to record.
  virtual bool IsOver() const { return false; }
};

// Called before the program is forked: opens what must exist by then, and adds to the context's
// environment. nullptr if the options do not select the source. The context outlives it.
using OpenSource = Result<std::unique_ptr<Source>>(SourceContext& context);

}  // namespace xpu
