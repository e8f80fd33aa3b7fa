// All event sources of one recording, as its options choose them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/source/source.h"

namespace xpu {

// What only tests ask for.
struct TestHooks {
  EventSink::Filter filter;                  // of what is written
  std::chrono::milliseconds table_delay{0};  // of each unwind table
  uint64_t device_buffers = 0;               // wire::RingHeader
  std::vector<OpenSource*> sources;          // after the others
};

class Sources {
 public:
  // What must be there before the program is forked, in the environment of the result too. Tables
  // of what the program will map at its start are made or loaded here. `processes` outlives this.
  static Result<Sources> Open(const RecordOptions& options, std::vector<std::string> environment,
                              ProcessTable& processes, const TestHooks& hooks = {});

  const std::vector<std::string>& environment() const { return context_->environment; }
  LaunchStackSource launch_stacks() const;
  CallGraph call_graph() const { return context_->call_graph(); }

  // The same as of each source (source/source.h), in their order.
  Status Arm(pid_t program);  // 0: none is started
  void Begin(EventSink& sink);
  void AfterExec(EventSink& sink);
  void Switch(const SwitchState& wanted);
  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);
  // Samples end first: a task at its end runs on after its process is known to have ended.
  void EndSampling();
  void Stop(EventSink& sink, bool early);  // `early`: programs go on, as was asked for
  std::vector<int> fds() const;
  int DrainIntervalMs(uint64_t now_ns) const;
  std::vector<RangeChange> TakeRangeChanges();
  bool IsOver() const;

 private:
  explicit Sources(std::unique_ptr<SourceContext> context) : context_(std::move(context)) {}

  std::unique_ptr<SourceContext> context_;
  std::vector<std::unique_ptr<Source>> sources_;  // destroyed before what they share
  SwitchState state_;
};

}  // namespace xpu
