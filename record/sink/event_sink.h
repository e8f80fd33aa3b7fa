// Where all sources put their events: the capture, and the ledger of what did not reach it.
//
// A capture that cannot be written must not disturb the program being recorded: the first failure
// is kept, the sources go on draining what the program and the kernel produce, later writes are
// still tried (a disk may get room again) and what they lose is counted by the writer.
//
// What was defined once is known here, and repeated where the capture goes on in another part
// and after blocks that were lost.
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

// A text that occurs again and again, with the id that it has in the tables of that number.
struct KeptText {
  std::string text;
  StringId id{};
  uint64_t tables = 0;  // none

  // With its place in a table.
  uint64_t Cost() const { return 64 + sizeof(*this) + text.size(); }
};

// Sees events before they are written. It writes none itself.
class EventObserver {
 public:
  virtual ~EventObserver() = default;
  // The node of a stack's path.
  using NodeOf = std::function<StackNode(StackId)>;

  virtual void See(const ProcessEvent& /*event*/, std::string_view /*name*/) {}
  virtual void See(const Mapping& /*mapping*/, std::string_view /*path*/,
                   std::string_view /*build_id*/) {}
  virtual void SeeStack(uint32_t /*pid*/, StackId /*stack*/, const NodeOf& /*node_of*/) {}
};

class EventSink {
 public:
  explicit EventSink(CaptureWriter writer)
      : writer_(std::move(writer)), lost_counted_(writer_.events_lost()) {}

  // Ids hold until the next Write or Flush.
  StringId Intern(std::string_view text) { return writer_.InternString(text); }
  StringId Intern(KeptText& text) {
    if (text.tables != TablesNumber()) {
      text.id = Intern(text.text);
      text.tables = TablesNumber();
    }
    return text.id;
  }
  // Innermost frame first. Remembers the kernel addresses, which are named at the end. One of
  // Python may write, so it comes first.
  StackId Intern(std::span<const Frame> innermost_first);

  // An id that was given out while this was the number is good for the next Write.
  uint64_t TablesNumber() { return writer_.TablesNumber(); }

  // PythonCode::code; of the whole recording. May write.
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
  // All of it was written: it is not repeated any more.
  void Forget(InstanceId instance);

  // Is asked before each event of the capture's list of that name, which is left out where it says
  // no. For tests of what a loss does to the rest; xpu-record sets none.
  using Filter = std::function<bool(std::string_view list, EventSink& sink)>;
  void SetFilter(Filter filter) { filter_ = std::move(filter); }
  // From now on; it outlives this.
  void AddObserver(EventObserver* observer) { observers_.push_back(observer); }
  // Likewise; CaptureWriter::SetLiveState.
  void SetLiveState(LiveState* live) { writer_.SetLiveState(live); }
  // Those in stacks since the last call.
  std::vector<uint64_t> TakeKernelAddresses();

  // Goes on in another capture, which begins with what a reader needs to know. Gives the writer of
  // the part that ends here, with its losses until now. On failure nothing has changed.
  Result<CaptureWriter> BeginPart(std::unique_ptr<BlockOutput> output, uint32_t part);

  // Puts the ledger's news and all that was written into the file.
  void Flush();
  // The ledger and `end`.
  void Close(const RecordingEnd& end);

  LossLedger& losses() { return losses_; }
  // Of the first write that failed; without those for which there was no room.
  const std::optional<Error>& failure() const { return failure_; }
  uint64_t events_written() const { return writer_.events_written(); }
  uint64_t events_lost() const { return writer_.events_lost(); }
  uint64_t bytes_written() const { return writer_.bytes_written(); }

 private:
  void Show(const Mapping& mapping);
  void Show(const ProcessEvent& event);
  template <typename Event>
  void Show(const Event& event) {
    if constexpr (requires { event.stack; }) ShowStack(event.pid, event.stack);
  }
  void ShowStack(uint32_t pid, StackId stack);
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
  std::vector<InstanceId> to_forget_;  // once they are repeated
  std::unordered_set<uint64_t> kernel_addresses_;
  Filter filter_;
  std::vector<EventObserver*> observers_;
  std::optional<Error> failure_;
  uint64_t lost_counted_ = 0;
};

}  // namespace xpu
