#include "record/session/event_loop.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/quote.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

SignalRouter::Group GroupOf(const EventLoop::Parts& parts) {
  return {.recorder_leads_session = ::getsid(0) == ::getpid(),
          .target = parts.target != nullptr ? parts.target->pid() : 0,
          .takes_switches = parts.takes_switches,
          // Without a program the signals can only be meant for the recording.
          .ignored = parts.target != nullptr ? parts.signals.ignored() : 0};
}

}  // namespace

EventLoop::EventLoop(const Parts& parts) : parts_(parts), router_(GroupOf(parts)) {}

bool EventLoop::TargetHasEnded() const {
  return parts_.target != nullptr && AllHaveEnded(parts_.target->pidfd());
}

Status EventLoop::Watch(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return SystemError("epoll_ctl", errno);
  }
  return Ok();
}

Status EventLoop::WatchTarget() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return SystemError("epoll_create", errno);
  if (parts_.target != nullptr) XPU_RETURN_IF_ERROR(Watch(parts_.target->pidfd()));
  XPU_RETURN_IF_ERROR(Watch(parts_.signals.signal_fd()));
  return Watch(parts_.signals.witness_fd());
}

Status EventLoop::WaitMs(int timeout_ms) const {
  epoll_event events[16];
  const int ready = ::epoll_wait(epoll_.get(), events, 16, timeout_ms);
  return ready < 0 && errno != EINTR ? Status(SystemError("epoll_wait", errno)) : Ok();
}

bool EventLoop::TargetInGroup() const {
  return parts_.target != nullptr && ::getpgid(parts_.target->pid()) == ::getpgrp();
}

// A program ignores from its start what the recorder ignores, and must end nevertheless.
int EventLoop::SignalFor(int signal) const {
  if ((parts_.signals.ignored() >> signal & 1) == 0) return signal;
  const auto status = ReadFile(Format("/proc/{}/status", parts_.target->pid()));
  const uint64_t ignored = status.ok() ? StatusBits(status.value(), "SigIgn") : 0;
  return (ignored >> (signal - 1) & 1) != 0 ? SIGTERM : signal;
}

void EventLoop::PassSignalsOn(uint64_t now_ns) {
  // Whoever sleeps has sent its signals, which can be read after that. The witness is read first,
  // so that its signals are known before the recorder's.
  const bool others_run = router_.waiting() && parts_.signals.WitnessOrAnyRuns(router_.Senders());
  for (const Arrival& arrival : parts_.signals.ReadWitnessed()) router_.AtWitness(arrival, now_ns);
  for (const Arrival& arrival : parts_.signals.ReadArrivals()) router_.AtRecorder(arrival, now_ns);
  for (int signal : router_.Due(now_ns, TargetInGroup(), others_run)) {
    if (parts_.target != nullptr) parts_.target->Send(SignalFor(signal));
  }
}

void EventLoop::EndIfAsked(uint64_t now_ns) {
  if (parts_.target == nullptr || router_.requests_to_end() < 2) return;
  if (kill_at_ns_ == 0) kill_at_ns_ = now_ns + kGraceNs;
  if (now_ns >= kill_at_ns_ || router_.requests_to_end() > 2) parts_.target->Send(SIGKILL);
}

bool EventLoop::IsOver(Sources& sources) const {
  if (parts_.control.is_over() || sources.IsOver()) return true;
  return parts_.target != nullptr ? TargetHasEnded() : router_.requests_to_end() > 0;
}

int EventLoop::IntervalMs(const Sources& sources, uint64_t now_ns) const {
  constexpr uint64_t kMsNs = 1'000'000;
  const uint64_t next_ns = parts_.control.NextNs();
  const uint64_t left_ms = (next_ns - std::min(next_ns, now_ns)) / kMsNs + 1;
  return static_cast<int>(
      std::min(left_ms, static_cast<uint64_t>(sources.DrainIntervalMs(now_ns))));
}

bool EventLoop::HandleCommand(const ControlFifo::Line& line) {
  switch (line.command) {
    case ControlFifo::Command::kEnable:
      parts_.control.Enable("fifo");
      return true;
    case ControlFifo::Command::kDisable:
      parts_.control.Disable("fifo");
      return true;
    case ControlFifo::Command::kStop:
      parts_.control.Stop();
      return true;
    case ControlFifo::Command::kPing:
      return true;
    case ControlFifo::Command::kUnknown:
      break;
  }
  if (++complaints_ <= kMaxComplaints) {
    std::fprintf(stderr,
                 "xpu-record: --control: unknown command: %s\n"
                 "hint: the commands are enable, disable, ping and stop\n",
                 QuoteForShell(std::string_view(line.text)).c_str());
  }
  return false;
}

void EventLoop::PollCommands(Sources& sources, EventSink& sink) {
  for (int i = router_.TakeSwitchRequests(); i > 0; --i) {
    parts_.control.Toggle("SIGUSR2");
    Apply(sources, sink);
  }
  if (parts_.fifo != nullptr) {
    for (const ControlFifo::Line& line : parts_.fifo->Read()) {
      const bool obeyed = HandleCommand(line);
      Apply(sources, sink);
      if (obeyed) parts_.fifo->Acknowledge();
    }
  }
  for (const RangeChange& change : sources.TakeRangeChanges()) {
    parts_.control.SetRange(change.is_open, change.cause);
    Apply(sources, sink, change.time_ns);
  }
}

SwitchState EventLoop::Wanted() const {
  const RecordingControl& control = parts_.control;
  return {
      .is_on = control.is_on(), .user_on = control.user_on(), .in_programs = control.in_programs()};
}

void EventLoop::Apply(Sources& sources, EventSink& sink, std::optional<uint64_t> in_program_ns) {
  parts_.control.Advance(MonotonicNs(), !sources.IsStarting());
  SwitchAsWanted(sources, sink, in_program_ns);
}

void EventLoop::SwitchAsWanted(Sources& sources, EventSink& sink,
                               std::optional<uint64_t> in_program_ns) {
  const uint64_t before_ns = MonotonicNs();
  const SwitchState wanted = Wanted();
  if (wanted == switched_) return;
  const bool changes = wanted.is_on != switched_.is_on;
  switched_ = wanted;
  sources.Switch(wanted);
  if (!changes) return;
  // What was recorded lies between the two times.
  const uint64_t time_ns = wanted.is_on ? before_ns : MonotonicNs();
  RecordingSwitch event;
  event.time_ns = in_program_ns ? std::min(*in_program_ns, time_ns) : time_ns;
  event.is_on = wanted.is_on;
  event.cause = sink.Intern(parts_.control.cause());
  sink.Write(event);
}

void EventLoop::ReportFailedWrite(const EventSink& sink) {
  if (!sink.failure() || std::exchange(has_reported_failure_, true)) return;
  const Error& error = *sink.failure();
  std::fputs(ForTerminal(Format("xpu-record: {}\nhint: {}{}the recording goes on; what cannot be "
                                "written is counted as lost\n",
                                error.message, error.hint, error.hint.empty() ? "" : "; "))
                 .c_str(),
             stderr);
}

void EventLoop::EnforceSizeLimit(Sources& sources, EventSink& sink) {
  if (parts_.rotation.IsDue(sink)) {
    // What belongs to the part that ends here.
    sources.BeforeNextPart(sink);
    sources.CountLosses(sink);
    parts_.rotation.BeginNext(sink);
  }
  if (has_reached_max_ || !parts_.rotation.HasReachedMax(sink)) return;
  has_reached_max_ = true;
  parts_.control.Stop();
}

Status EventLoop::Record(Sources& sources, EventSink& sink) {
  XPU_RETURN_IF_ERROR(WatchTarget());
  if (parts_.fifo != nullptr) XPU_RETURN_IF_ERROR(Watch(parts_.fifo->fd()));
  for (int fd : sources.fds()) XPU_RETURN_IF_ERROR(Watch(fd));
  sources.Switch(Wanted());
  // Sources that must begin switched off were opened that way.
  SwitchAsWanted(sources, sink, parts_.begin_ns);
  uint64_t flush_at_ns = MonotonicNs() + kFlushNs;
  while (!IsOver(sources)) {
    XPU_RETURN_IF_ERROR(WaitMs(IntervalMs(sources, MonotonicNs())));
    const uint64_t now_ns = MonotonicNs();
    PassSignalsOn(now_ns);
    EndIfAsked(now_ns);
    Apply(sources, sink);
    sources.Drain(sink);
    PollCommands(sources, sink);
    EnforceSizeLimit(sources, sink);
    if (now_ns >= flush_at_ns) {
      sources.CountLosses(sink);
      sink.Flush();
      ReportFailedWrite(sink);
      flush_at_ns = now_ns + kFlushNs;
    }
  }
  // What the programs did until the end of the recording.
  sources.Drain(sink);
  PollCommands(sources, sink);
  return Ok();
}

Result<int> EventLoop::WaitForTarget() {
  XPU_RETURN_IF_ERROR(WatchTarget());
  constexpr int kForDueSignalsMs = 25;
  while (!TargetHasEnded()) {
    const bool waits = router_.waiting() || router_.requests_to_end() >= 2;
    XPU_RETURN_IF_ERROR(WaitMs(waits ? kForDueSignalsMs : -1));
    const uint64_t now_ns = MonotonicNs();
    PassSignalsOn(now_ns);
    EndIfAsked(now_ns);
  }
  return parts_.target->Wait();
}

}  // namespace xpu
