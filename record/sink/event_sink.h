// Receives the events of all sources and owns what becomes of them: the capture's writer and the
// ledger of losses.
//
// A capture that cannot be written must not disturb the recorded program: the first failure is
// kept, sources continue to drain the program and the kernel, later writes are still tried (a disk
// may have space again), and the writer counts what they lose. The sink knows all definitions, and
// repeats them where the capture continues in another part and after lost blocks. Used by the
// recorder's thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/events.h"
#include "format/writer.h"
#include "record/sink/loss_ledger.h"
#include "record/sink/part_snapshot.h"
#include "record/sink/python_codes.h"

namespace xpu {

// A string that occurs repeatedly, with its id, valid in the tables of that number.
struct KeptText {
  std::string text;
  StringId id{};
  uint64_t tables = 0;  // 0: none

  // Estimated memory, including the entry in a table.
  uint64_t Cost() const { return 64 + sizeof(*this) + text.size(); }
};

// Is called before events are written. Must not write events itself.
class EventObserver {
 public:
  virtual ~EventObserver() = default;
  // Returns the node of a stack.
  using NodeOf = std::function<StackNode(StackId)>;

  virtual void Observe(const ProcessEvent& /*event*/, std::string_view /*name*/) {}
  virtual void Observe(const Mapping& /*mapping*/, std::string_view /*path*/,
                       std::string_view /*build_id*/) {}
  virtual void ObserveStack(uint32_t /*pid*/, StackId /*stack*/, const NodeOf& /*node_of*/) {}
  // `time_ns`: when the process had it.
  virtual void ObservePythonStack(uint32_t /*pid*/, StackId /*stack*/, uint64_t /*time_ns*/,
                                  const NodeOf& /*node_of*/) {}
  virtual void Observe(const PythonCode& /*code*/, std::string_view /*path*/,
                       std::string_view /*line_table*/) {}
  virtual void Observe(const GpuProcess& /*process*/) {}
  virtual void Observe(const GpuSample& /*sample*/) {}
  virtual void Observe(const CubinSlice& /*slice*/, std::string_view /*bytes*/) {}
};

class EventSink {
 public:
  explicit EventSink(CaptureWriter writer)
      : writer_(std::move(writer)), lost_counted_(writer_.events_lost()) {}

  // Ids are valid until the next Write or Flush.
  StringId Intern(std::string_view text) { return writer_.InternString(text); }
  StringId Intern(KeptText& text) {
    if (text.tables != TablesNumber()) {
      text.id = Intern(text.text);
      text.tables = TablesNumber();
    }
    return text.id;
  }
  // Innermost frame first. Collects kernel addresses, whose names are written at the end. May write
  // events for Python frames, so the Python stack is interned before the native one.
  StackId Intern(std::span<const Frame> innermost_first);

  // While this number stays the same, ids remain valid for the next Write.
  uint64_t TablesNumber() { return writer_.TablesNumber(); }

  // Returns PythonCode::code, valid for the whole recording. May write.
  uint32_t Define(PythonCodes::Content code);

  template <typename Event>
  void Write(const Event& event) {
    if (filter_ && !filter_(kEventName<Event>, *this)) return;
    if constexpr (PartSnapshot::Keeps<Event>()) {
      snapshot_.Note(event, [this](StringId id) { return writer_.TextOf(id); });
    }
    if (!observers_.empty()) Show(event);
    Note(writer_.Write(event));
  }
  // The process has ended and all its events are written, so they are not repeated any more.
  void Forget(InstanceId instance);
  void ForgetContainer(uint32_t pid) { snapshot_.ForgetContainer(pid); }

  // Called before each event of the capture's list of that name, which is dropped if the result is
  // false. Lets tests see what a loss does to the rest.
  using Filter = std::function<bool(std::string_view list, EventSink& sink)>;
  void SetFilter(Filter filter) { filter_ = std::move(filter); }
  // Observers outlive this object.
  void AddObserver(EventObserver* observer) { observers_.push_back(observer); }
  // `live` outlives this object; see CaptureWriter::SetLiveState.
  void SetLiveState(LiveState* live) { writer_.SetLiveState(live); }
  // Kernel addresses in stacks since the last call.
  std::vector<uint64_t> TakeKernelAddresses();

  // Continues in another capture, which begins with the state that a reader needs. Returns the
  // writer of the part that ends here, with its losses so far. On failure nothing has changed.
  Result<CaptureWriter> BeginPart(std::unique_ptr<BlockOutput> output, uint32_t part);

  // Writes new losses and everything that is buffered to the file.
  void Flush();
  // Writes the ledger and `end`.
  void Close(const RecordingEnd& end);

  LossLedger& losses() { return losses_; }
  // Of the first failed write; blocks refused because of a full queue do not count.
  const std::optional<Error>& failure() const { return failure_; }
  uint64_t events_written() const { return writer_.events_written(); }
  uint64_t events_lost() const { return writer_.events_lost(); }
  uint64_t bytes_written() const { return writer_.bytes_written(); }

 private:
  void Show(const Mapping& mapping);
  void Show(const ProcessEvent& event);
  void Show(const PythonCode& code);
  void Show(const GpuProcess& process);
  void Show(const GpuSample& sample);
  void Show(const CubinSlice& slice);
  template <typename Event>
  void Show(const Event& event) {
    if constexpr (requires { event.stack; }) ShowStack(event.pid, event.stack);
    if constexpr (requires { event.waker_stack; }) ShowStack(event.waker_pid, event.waker_stack);
    if constexpr (requires { event.python_stack; }) {
      if (event.python_stack) ShowPythonStack(event.pid, event.python_stack, TimeOf(event));
    }
  }
  template <typename Event>
  static uint64_t TimeOf(const Event& event) {
    if constexpr (requires { event.time_ns; }) {
      return event.time_ns;
    } else {
      return event.start_ns;
    }
  }
  void ShowStack(uint32_t pid, StackId stack);
  void ShowPythonStack(uint32_t pid, StackId stack, uint64_t time_ns);
  void DefineIfDue(uint32_t code);
  void Note(Status status);
  void Restate();
  void Write(const LossLedger::Entry& entry, uint64_t now_ns);
  void WriteLosses();

  CaptureWriter writer_;
  LossLedger losses_;
  PythonCodes python_codes_;
  PartSnapshot snapshot_;
  bool restate_due_ = false;           // blocks were lost, perhaps with definitions
  std::vector<InstanceId> to_forget_;  // after they have been repeated
  std::unordered_set<uint64_t> kernel_addresses_;
  Filter filter_;
  std::vector<EventObserver*> observers_;
  std::optional<Error> failure_;
  uint64_t lost_counted_ = 0;
};

}  // namespace xpu
