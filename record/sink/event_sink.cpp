#include "record/sink/event_sink.h"

#include <algorithm>
#include <utility>

#include "format/base/text.h"
#include "record/base/clock.h"

namespace xpu {

namespace {

std::string ReasonOf(const Error& error) {
  return error.hint.empty() ? error.message : Format("{} ({})", error.message, error.hint);
}

}  // namespace

StackId EventSink::Intern(std::span<const Frame> innermost_first) {
  for (const Frame& frame : innermost_first) {
    if (frame.kind != FrameKind::kPython) break;  // such stacks contain only Python frames
    DefineIfDue(PythonFrame::OfBits(frame.address).code);
  }
  for (const Frame& frame : innermost_first) {
    if (frame.kind != FrameKind::kKernel) break;  // kernel frames are the innermost ones
    kernel_addresses_.insert(frame.address);
  }
  return writer_.InternStack(innermost_first);
}

uint32_t EventSink::Define(PythonCodes::Content content) {
  const uint32_t code = python_codes_.NumberOf(std::move(content));
  DefineIfDue(code);
  return code;
}

void EventSink::DefineIfDue(uint32_t code) {
  const PythonCodes::Content* due = python_codes_.TakeDue(code);
  if (due == nullptr) return;
  PythonCode event;
  event.code = code;
  event.name = Intern(due->name);
  event.path = Intern(due->path);
  event.first_line = due->first_line;
  event.line_table = Intern(due->line_table);
  event.version = due->version;
  Write(event);
}

// The tables may restart first, so that live state is repeated without this event.
void EventSink::Show(const Mapping& mapping) {
  writer_.TablesNumber();
  for (EventObserver* observer : observers_) {
    observer->Observe(mapping, writer_.TextOf(mapping.path), writer_.TextOf(mapping.build_id));
  }
}

void EventSink::Show(const ProcessEvent& event) {
  writer_.TablesNumber();
  for (EventObserver* observer : observers_) observer->Observe(event, writer_.TextOf(event.name));
}

void EventSink::Show(const PythonCode& code) {
  for (EventObserver* observer : observers_) {
    observer->Observe(code, writer_.TextOf(code.path), writer_.TextOf(code.line_table));
  }
}

void EventSink::Show(const GpuProcess& process) {
  for (EventObserver* observer : observers_) observer->Observe(process);
}

void EventSink::Show(const GpuSample& sample) {
  for (EventObserver* observer : observers_) observer->Observe(sample);
}

void EventSink::Show(const CubinSlice& slice) {
  for (EventObserver* observer : observers_) observer->Observe(slice, writer_.TextOf(slice.bytes));
}

void EventSink::ShowPythonStack(uint32_t pid, StackId stack, uint64_t time_ns) {
  const EventObserver::NodeOf node_of = [this](StackId id) { return writer_.NodeOf(id); };
  for (EventObserver* observer : observers_) {
    observer->ObservePythonStack(pid, stack, time_ns, node_of);
  }
}

void EventSink::ShowStack(uint32_t pid, StackId stack) {
  const EventObserver::NodeOf node_of = [this](StackId id) { return writer_.NodeOf(id); };
  for (EventObserver* observer : observers_) observer->ObserveStack(pid, stack, node_of);
}

std::vector<uint64_t> EventSink::TakeKernelAddresses() {
  std::vector<uint64_t> addresses(kernel_addresses_.begin(), kernel_addresses_.end());
  kernel_addresses_ = {};
  return addresses;
}

Result<CaptureWriter> EventSink::BeginPart(std::unique_ptr<BlockOutput> output, uint32_t part) {
  Flush();
  XPU_ASSIGN_OR_RETURN(CaptureWriter next, writer_.NextPart(std::move(output)));
  CaptureWriter ended = std::exchange(writer_, std::move(next));
  lost_counted_ = 0;
  snapshot_.BeginPart(part, MonotonicNs(), RealtimeNs());
  Restate();
  return ended;
}

void EventSink::Forget(InstanceId instance) {
  constexpr size_t kMaxToForget = 1024;
  if (restate_due_ && to_forget_.size() < kMaxToForget) {
    to_forget_.push_back(instance);
  } else {
    snapshot_.Forget(instance);
  }
}

void EventSink::Restate() {
  restate_due_ = false;
  python_codes_.MakeAllDue();
  writer_.SetRestating(true);
  snapshot_.Restate([this](std::string_view text) { return Intern(text); },
                    [this](const auto& event) { Note(writer_.Write(event)); });
  writer_.SetRestating(false);
  Note(writer_.Flush());     // also reports what became of the last block
  if (restate_due_) return;  // not all of it was accepted
  for (const InstanceId instance : std::exchange(to_forget_, {})) snapshot_.Forget(instance);
}

void EventSink::Note(Status status) {
  const bool is_busy = !status.ok() && status.error().kind == ErrorKind::kBusy;
  const std::string why = status.ok() || is_busy ? std::string() : ReasonOf(status.error());
  if (!status.ok()) {
    restate_due_ = true;
    python_codes_.MakeAllDue();
    if (!is_busy && !failure_) failure_ = std::move(status).error();
  }
  if (const uint64_t lost = writer_.events_lost(); lost != lost_counted_) {
    losses_.Add(is_busy ? LossKind::kOutputStalled : LossKind::kWriteFailed, lost - lost_counted_,
                0, {}, why);
    lost_counted_ = lost;
  }
}

void EventSink::Write(const LossLedger::Entry& entry, uint64_t now_ns) {
  Loss loss;
  loss.time_ns = now_ns;
  loss.name = Intern(InfoOf(entry.kind).name);
  loss.count = entry.count;
  loss.pid = entry.pid;
  loss.instance = entry.instance;
  loss.detail = Intern(entry.detail);
  Note(writer_.Write(loss));
}

// In blocks of their own, so that a dropped block does not lose the count of what was dropped.
void EventSink::WriteLosses() {
  constexpr size_t kPerBlock = 4096;
  const std::vector<LossLedger::Entry> entries = losses_.TakeNew();
  const uint64_t now_ns = MonotonicNs();
  for (size_t at = 0; at < entries.size(); at += kPerBlock) {
    const auto some = std::span(entries).subspan(at, std::min(kPerBlock, entries.size() - at));
    if (writer_.is_writable()) {
      for (const LossLedger::Entry& entry : some) Write(entry, now_ns);
      Note(writer_.Flush());
    }
    if (writer_.is_writable()) continue;
    for (const LossLedger::Entry& entry : some) losses_.PutBack(entry);
  }
}

void EventSink::Flush() {
  const bool was_due = restate_due_;
  Note(writer_.Flush());
  WriteLosses();
  // Repeated only once the output accepts blocks again.
  if (was_due && writer_.is_writable()) Restate();
}

void EventSink::Close(const RecordingEnd& end) {
  Flush();
  // Flush repeats nothing while the output refuses blocks, but this is the last chance.
  if (restate_due_) Restate();
  Write(end);
  Note(writer_.Flush());
  // Losses not yet reported: either the output accepts blocks again, or it never will.
  WriteLosses();
  Note(writer_.Close());
}

}  // namespace xpu
