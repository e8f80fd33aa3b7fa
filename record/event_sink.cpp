#include "record/event_sink.h"

#include <ctime>
#include <utility>

namespace xpu {

uint64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

StackId EventSink::Intern(std::span<const Frame> innermost_first) {
  for (const Frame& frame : innermost_first) {
    if (frame.kind != FrameKind::kKernel) break;  // kernel frames are the innermost ones
    kernel_addresses_.insert(frame.address);
  }
  return writer_.InternStack(innermost_first);
}

void EventSink::See(const Mapping& mapping) {
  hits_->SeeMapping({mapping.pid,
                     mapping.start_address,
                     mapping.size_bytes,
                     mapping.file_offset,
                     writer_.TextOf(mapping.path),
                     writer_.TextOf(mapping.build_id),
                     {PackedDevice(mapping.device_major, mapping.device_minor), mapping.inode}});
}

void EventSink::See(const ProcessEvent& event) {
  // Threads share what their process has mapped.
  if (event.kind == ProcessEventKind::kFork && event.pid != event.parent_pid) {
    hits_->SeeFork(event.pid, event.parent_pid, event.time_ns);
  } else if (event.kind == ProcessEventKind::kExit && event.pid == event.tid) {
    hits_->SeeExit(event.pid, event.time_ns);
  }
}

void EventSink::SeeStack(uint32_t pid, StackId stack) {
  hits_->SeeStack(pid, stack, [this](StackId id) { return writer_.NodeOf(id); });
}

void EventSink::Note(Status status) {
  if (!status.ok() && !failure_) failure_ = std::move(status).error();
  if (const uint64_t lost = writer_.events_lost(); lost != lost_counted_) {
    losses_.Add(LossKind::kWriteFailed, lost - lost_counted_);
    lost_counted_ = lost;
  }
}

void EventSink::WriteLosses() {
  const uint64_t now_ns = MonotonicNs();
  for (const LossLedger::Entry& entry : losses_.TakeNew()) {
    Loss loss;
    loss.time_ns = now_ns;
    loss.name = Intern(InfoOf(entry.kind).name);
    loss.count = entry.count;
    loss.pid = entry.pid;
    loss.instance = entry.instance;
    loss.detail = Intern(entry.detail);
    Write(loss);
  }
}

void EventSink::Flush() {
  WriteLosses();
  Note(writer_.Flush());
}

void EventSink::Close(const RecordingEnd& end) {
  WriteLosses();
  Write(end);
  Note(writer_.Close());
}

}  // namespace xpu
