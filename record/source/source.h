// One kind of event source: CPU samples, GPU activity, probes, the processes themselves.
//
// A recording has a list of them (session/sources.cpp) and treats all alike: it opens each before
// the program is forked, arms it before the program's exec, drains it many times a second, switches
// it off and on, and stops it. Used by the recorder's thread alone.
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

// Whether to record.
struct SwitchState {
  bool is_on = true;
  bool user_on = true;  // the program may be in no capture range nevertheless
};

// The recorded programs are in a capture range now, or no longer in any.
struct RangeChange {
  uint64_t time_ns = 0;
  bool is_open = false;
  std::string cause;
};

class Source {
 public:
  // How long a source may be left alone, unless it says otherwise: the BPF rings wake nobody.
  static constexpr int kUsualIntervalMs = 25;

  virtual ~Source() = default;

  // Between the program's fork and its exec; the scope has it by then.
  virtual Status Arm() { return Ok(); }
  // The capture is open: events that describe the source, and what ran before. Takes a while;
  // whatever happens meanwhile is not missed.
  virtual void Begin(EventSink& /*sink*/) {}
  // What must be read from the running program when the kernel does not report it.
  virtual void AfterExec(EventSink& /*sink*/) {}
  virtual void Switch(const SwitchState& /*wanted*/) {}
  // Takes what is there now, also while switched off.
  virtual void Drain(EventSink& sink) = 0;
  // About once a second: losses counted elsewhere.
  virtual void CountLosses(EventSink& /*sink*/) {}
  // The recording is over: takes all that is left. `may_go_on`: processes that have not ended do
  // not count as lost.
  virtual void Stop(EventSink& /*sink*/, bool /*may_go_on*/) {}

  // To wait on.
  virtual std::vector<int> fds() const { return {}; }
  // When to drain it at the latest.
  virtual int DrainIntervalMs(uint64_t /*now_ns*/) const { return kUsualIntervalMs; }
  // Capture ranges that have begun or ended in programs since the last call.
  virtual std::vector<RangeChange> TakeRangeChanges() { return {}; }
  // What Begin has started in programs takes a little longer. The recording counts from its end,
  // but does not wait for it without limit; until then the source is drained.
  virtual bool IsStarting() const { return false; }
  // Nothing is left that could be recorded.
  virtual bool IsOver() const { return false; }
};

// Before the program is forked: what must be there; adds to the environment of the context.
// nullptr: the options do not ask for the source. The context outlives it.
using OpenSource = Result<std::unique_ptr<Source>>(SourceContext& context);

}  // namespace xpu
