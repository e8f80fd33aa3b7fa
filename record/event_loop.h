// The recorder while the program runs: waits, drains the sources, passes signals on.
#pragma once

#include <cstdint>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/event_sink.h"
#include "record/signals.h"
#include "record/sources.h"
#include "record/target.h"

namespace xpu {

class EventLoop {
 public:
  EventLoop(Target& target, SignalSource& signals, Sources& sources, EventSink& sink);

  // Until the program has ended, or the user asked for the end a second time and the program did
  // not follow. Returns its wait status.
  Result<int> Run();

 private:
  Status WatchAll();
  Status Watch(int fd);
  void PassSignalsOn(uint64_t now_ns);
  // The second request to end gives the program kGraceNs; after that it is killed.
  void EndIfAsked(uint64_t now_ns);
  bool TargetInGroup() const;

  static constexpr uint64_t kFlushNs = 900'000'000;  // the capture promises a second
  static constexpr uint64_t kGraceNs = 2'000'000'000;

  Target& target_;
  SignalSource& signals_;
  Sources& sources_;
  EventSink& sink_;
  SignalRouter router_;
  UniqueFd epoll_;
  uint64_t kill_at_ns_ = 0;  // 0: not asked twice
};

}  // namespace xpu
