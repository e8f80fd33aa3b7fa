// All event sources of one recording, selected by its options.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/source/source.h"

namespace xpu {

// Only tests set these.
struct TestHooks {
  EventSink::Filter filter;                  // of events to write
  std::chrono::milliseconds table_delay{0};  // delay of each unwind table
  uint64_t device_buffers = 0;               // wire::RingHeader
  uint64_t hang_ns = 0;                      // likewise; 0: the usual time
  std::vector<OpenSource*> sources;          // added after the usual ones
  std::function<void(RecordOptions&)> change_options;
};

class Sources {
 public:
  // Opens what must exist before the program is forked, and adds to its environment. Loads or makes
  // tables of the files that the program will map at its start. `processes` outlives the result.
  static Result<Sources> Open(const RecordOptions& options, std::vector<std::string> environment,
                              ProcessTable& processes, const TestHooks& hooks = {});

  const std::vector<std::string>& environment() const { return context_->environment; }
  LaunchStackSource launch_stacks() const;
  CallGraph call_graph() const { return context_->call_graph(); }

  // Called for each source in order (source/source.h).
  Status Arm(pid_t program);  // 0: none is started
  void Begin(EventSink& sink);
  void AfterExec(EventSink& sink);
  void Switch(const SwitchState& wanted);
  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);
  void BeforeNextPart(EventSink& sink);
  // Sampling ends before the other sources: a task still runs after its process is known to have
  // ended.
  void EndSampling();
  void Stop(EventSink& sink, bool early);  // `early`: programs continue, as requested
  std::vector<int> fds() const;
  int DrainIntervalMs(uint64_t now_ns) const;
  std::vector<RangeChange> TakeRangeChanges();
  bool IsStarting() const;
  bool IsOver() const;

 private:
  explicit Sources(std::unique_ptr<SourceContext> context) : context_(std::move(context)) {}

  std::unique_ptr<SourceContext> context_;
  std::vector<std::unique_ptr<Source>> sources_;  // destroyed before what they share
  SwitchState state_;
};

}  // namespace xpu
