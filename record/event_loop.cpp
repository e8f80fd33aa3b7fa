#include "record/event_loop.h"

#include <cerrno>

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "format/base/file.h"

namespace xpu {
namespace {

SignalRouter::Group GroupOf(const Target& target) {
  return {.recorder_leads_session = ::getsid(0) == ::getpid(), .target = target.pid()};
}

bool HasEnded(const Target& target) {
  pollfd poll_fd{target.pidfd(), POLLIN, 0};
  return ::poll(&poll_fd, 1, 0) > 0;
}

}  // namespace

EventLoop::EventLoop(Target& target, SignalSource& signals, Sources& sources, EventSink& sink)
    : target_(target),
      signals_(signals),
      sources_(sources),
      sink_(sink),
      router_(GroupOf(target)) {}

Status EventLoop::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return SystemError("epoll_ctl", errno);
  }
  return Ok();
}

Status EventLoop::WatchAll() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return SystemError("epoll_create", errno);
  XPU_RETURN_IF_ERROR(Watch(target_.pidfd()));
  XPU_RETURN_IF_ERROR(Watch(signals_.signal_fd()));
  XPU_RETURN_IF_ERROR(Watch(signals_.witness_fd()));
  for (int fd : sources_.fds()) XPU_RETURN_IF_ERROR(Watch(fd));
  return Ok();
}

bool EventLoop::TargetInGroup() const { return ::getpgid(target_.pid()) == ::getpgrp(); }

void EventLoop::PassSignalsOn(uint64_t now_ns) {
  // The witness first: what it saw before the recorder did is then known.
  for (const Arrival& arrival : signals_.ReadWitnessed()) router_.AtWitness(arrival, now_ns);
  for (const Arrival& arrival : signals_.ReadArrivals()) router_.AtRecorder(arrival, now_ns);
  for (int signal : router_.Due(now_ns, TargetInGroup())) target_.Send(signal);
}

void EventLoop::EndIfAsked(uint64_t now_ns) {
  if (router_.requests_to_end() < 2) return;
  if (kill_at_ns_ == 0) kill_at_ns_ = now_ns + kGraceNs;
  if (now_ns >= kill_at_ns_ || router_.requests_to_end() > 2) target_.Send(SIGKILL);
}

Result<int> EventLoop::Run() {
  XPU_RETURN_IF_ERROR(WatchAll());
  uint64_t flush_at_ns = MonotonicNs() + kFlushNs;
  while (!HasEnded(target_)) {
    epoll_event events[16];
    const int wait_ms = sources_.DrainIntervalMs(MonotonicNs());
    const int ready = ::epoll_wait(epoll_.get(), events, 16, wait_ms);
    if (ready < 0 && errno != EINTR) return SystemError("epoll_wait", errno);
    const uint64_t now_ns = MonotonicNs();
    PassSignalsOn(now_ns);
    EndIfAsked(now_ns);
    sources_.Drain(sink_);
    if (now_ns >= flush_at_ns) {
      sources_.CountLosses(sink_);
      sink_.Flush();
      flush_at_ns = now_ns + kFlushNs;
    }
  }
  return target_.Wait();
}

}  // namespace xpu
