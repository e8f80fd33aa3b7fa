#include "format/writer.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <type_traits>
#include <utility>

#include <sys/random.h>

#include "format/block.h"
#include "format/intern.h"
#include "format/message.h"
#include "format/schema_of.h"

namespace xpu {
namespace {

// A block is closed when it might become this large, so that what one more event defines (texts up
// to kMaxStringBytes, a stack) still fits kMaxRawBytes.
constexpr size_t kCloseAtBytes = size_t{2} << 20;
constexpr size_t kCloseAtDefinitions = kMaxDefinitionsPerBlock - 2 * kMaxStackFrames;
// Tables of this many entries start afresh although few bytes were written.
constexpr size_t kMaxTableEntries = size_t{1} << 20;

Result<uint64_t> DrawCaptureId() {
  uint64_t id = 0;
  if (::getrandom(&id, sizeof(id), 0) != sizeof(id)) return SystemError("getrandom", errno);
  return id;
}

}  // namespace

class CaptureWriter::Impl {
 public:
  Impl(std::unique_ptr<BlockOutput> output, Options options, uint64_t capture_id)
      : output_(std::move(output)),
        options_(options),
        capture_id_(capture_id),
        encoder_(options.compression_level) {}

  Status WriteHeader();
  void ContinueAt(const CaptureEnd& end);
  // Takes over what is alive from `before`, which ends here.
  void BeginPart(Impl& before);
  void SetLiveState(LiveState* live) { live_ = live; }
  void SetRestating(bool restating);
  const Options& options() const { return options_; }
  StringId InternString(std::string_view text);
  StackId InternStack(std::span<const Frame> innermost_first);
  uint64_t TablesNumber();
  std::string_view TextOf(StringId id) const { return strings_.Text(id); }
  StackNode NodeOf(StackId id) const { return stacks_.Node(id); }
  template <typename Event>
  Status Write(const Event& event);
  Status Flush();
  Status Close();

  bool is_writable() const { return !last_write_failed_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t events_written() const { return events_written_; }
  uint64_t events_lost() const { return events_lost_; }

 private:
  void BeginBlock();
  template <typename Event>
  void Append(const Event& event);
  void RestateLive();
  void StateAgain(LiveState& live);
  bool IsFull() const;
  bool HasRoomFor(size_t bytes, size_t definitions) const;
  size_t PendingBound() const;
  void CloseBlock();
  void TakeBack(const BlockCounts& lost);
  void RestartIfDue();
  void Restart();
  Status TakeError();

  std::unique_ptr<BlockOutput> output_;
  const Options options_;
  const uint64_t capture_id_;
  BlockEncoder encoder_;

  // The block that is being filled. Its definitions are the tables' pending ones.
  BlockContent content_;
  StringTable strings_;
  StackTable stacks_;
  size_t event_bound_ = 0;     // bytes that its events take at most
  uint32_t event_count_ = 0;   // with restated ones
  uint32_t given_count_ = 0;   // without
  double bound_to_raw_ = 0.5;  // what blocks took of their bound so far

  LiveState* live_ = nullptr;
  bool restate_due_ = false;
  uint64_t tables_number_ = 1;  // of all parts of the recording
  uint64_t bytes_since_restart_ = 0;

  std::optional<Error> error_;  // of a block that was closed since the last Write or Flush
  bool last_write_failed_ = false;
  uint64_t sequence_ = 0;        // of the last block in the file
  uint64_t events_in_file_ = 0;  // with restated ones
  uint64_t bytes_written_ = 0;
  uint64_t events_written_ = 0;
  uint64_t events_lost_ = 0;
};

Status CaptureWriter::Impl::WriteHeader() {
  const std::string header =
      EncodeFileHeader({.capture_id = capture_id_, .writer = "xpu " XPU_VERSION, .features = ""});
  XPU_RETURN_IF_ERROR(output_->Begin(header));
  bytes_written_ += header.size();
  return Ok();
}

void CaptureWriter::Impl::ContinueAt(const CaptureEnd& end) {
  sequence_ = end.sequence;
  events_in_file_ = end.events;
  strings_.StartAt(end.next_string);
  stacks_.StartAt(end.next_stack);
}

void CaptureWriter::Impl::BeginPart(Impl& before) {
  live_ = std::exchange(before.live_, nullptr);  // which may go on in another thread
  tables_number_ = before.tables_number_ + 1;
  SetRestating(true);
  RestateLive();
}

void CaptureWriter::Impl::SetRestating(bool restating) {
  if (content_.events.restated == restating) return;
  CloseBlock();
  content_.events.restated = restating;
}

// ---- filling a block ---------------------------------------------------------------------------

size_t CaptureWriter::Impl::PendingBound() const {
  return event_bound_ + strings_.pending_bytes() +
         strings_.pending_count() * kUpperBoundOfStringSize +
         stacks_.pending_count() * kUpperBoundOfStackNode;
}

bool CaptureWriter::Impl::IsFull() const {
  const size_t bound = PendingBound();
  return event_count_ >= kMaxEventsPerBlock || kUpperBoundOfBlock + bound >= kCloseAtBytes ||
         static_cast<double>(bound) * bound_to_raw_ >= static_cast<double>(options_.block_bytes) ||
         std::max(strings_.pending_count(), stacks_.pending_count()) >= kCloseAtDefinitions;
}

bool CaptureWriter::Impl::HasRoomFor(size_t bytes, size_t definitions) const {
  return kUpperBoundOfBlock + PendingBound() + bytes <= kMaxRawBytes &&
         std::max(strings_.pending_count(), stacks_.pending_count()) + definitions <=
             kMaxDefinitionsPerBlock;
}

void CaptureWriter::Impl::BeginBlock() {
  // Not onto a disk that is full: the state is repeated once a block could be written.
  if (restate_due_ && !last_write_failed_) RestateLive();
}

uint64_t CaptureWriter::Impl::TablesNumber() {
  BeginBlock();  // it may start the tables afresh
  return tables_number_;
}

StringId CaptureWriter::Impl::InternString(std::string_view text) {
  if (text.empty()) return {};
  BeginBlock();
  const size_t bytes = std::min(text.size(), kMaxStringBytes) + kUpperBoundOfStringSize;
  if (!HasRoomFor(bytes, 1)) CloseBlock();
  return strings_.Intern(text);
}

StackId CaptureWriter::Impl::InternStack(std::span<const Frame> innermost_first) {
  BeginBlock();
  const size_t frames = std::min(innermost_first.size(), kMaxStackFrames);
  if (!HasRoomFor(frames * kUpperBoundOfStackNode, frames)) CloseBlock();
  return stacks_.Intern(innermost_first);
}

template <typename Event>
void CaptureWriter::Impl::Append(const Event& event) {
  VisitLists(content_.events, [&event]<typename Listed>(const char*, std::vector<Listed>& list) {
    if constexpr (std::is_same_v<Listed, Event>) list.push_back(event);
  });
  event_bound_ += UpperBoundOfEvent<Event>();
  ++event_count_;
}

template <typename Event>
Status CaptureWriter::Impl::Write(const Event& event) {
  BeginBlock();
  Append(event);
  if (!content_.events.restated) ++given_count_;
  if (IsFull()) {
    CloseBlock();
    RestartIfDue();
  }
  return TakeError();
}

void CaptureWriter::Impl::RestateLive() {
  restate_due_ = false;
  if (live_ != nullptr) StateAgain(*live_);
  // A state of more than `restate_bytes` is not stated for ever.
  bytes_since_restart_ = 0;
  restate_due_ = last_write_failed_;
}

void CaptureWriter::Impl::StateAgain(LiveState& live) {
  live.ForEach(
      [this](ProcessEvent event, std::string_view name) {
        event.restated = true;
        event.name = strings_.Intern(name);
        Append(event);
        if (IsFull()) CloseBlock();
      },
      [this](Mapping mapping, std::string_view path, std::string_view build_id) {
        mapping.restated = true;
        mapping.path = strings_.Intern(path);
        mapping.build_id = strings_.Intern(build_id);
        Append(mapping);
        if (IsFull()) CloseBlock();
      });
}

// ---- writing a block ---------------------------------------------------------------------------

void CaptureWriter::Impl::CloseBlock() {
  const size_t bound = PendingBound();
  if (bound == 0) return;
  content_.first_string = strings_.first_pending();
  content_.first_stack = stacks_.first_pending();
  strings_.TakePending(content_.string_sizes, content_.string_bytes);
  content_.stack_nodes = stacks_.TakePending();

  std::vector<uint64_t> message = EncodeMessage(content_);
  // With a byte for each event and definition, whatever other blocks are lost: kEventsWithoutBytes.
  const size_t definitions = content_.string_sizes.size() + content_.stack_nodes.size();
  message.resize(
      std::max(message.size(), std::max<size_t>(event_count_, definitions) / sizeof(uint64_t) + 1));
  const BlockHeader header{.capture_id = capture_id_,
                           .sequence = sequence_ + 1,
                           .events_before = events_in_file_,
                           .events = event_count_};
  const std::string_view block = encoder_.Encode(header, std::as_bytes(std::span(message)));
  const Status status = output_->Write(
      block,
      {.blocks = 1, .bytes = block.size(), .events = event_count_, .given_events = given_count_});
  last_write_failed_ = !status.ok();
  if (status.ok()) {
    ++sequence_;
    events_in_file_ += event_count_;
    events_written_ += given_count_;
    bytes_written_ += block.size();
    bytes_since_restart_ += block.size();
  } else {
    TakeBack(output_->TakeLost());
    events_lost_ += given_count_;
    if (!error_) error_ = status.error();
  }
  constexpr size_t kTypicalBytes = 32 << 10;
  if (bound >= kTypicalBytes) {
    const double used = static_cast<double>(message.size() * sizeof(uint64_t));
    bound_to_raw_ = std::clamp(used / static_cast<double>(bound), 0.05, 1.0);
  }
  VisitLists(content_.events, [](const char*, auto& list) { list.clear(); });
  content_.string_sizes.clear();
  content_.string_bytes.clear();
  event_bound_ = 0;
  event_count_ = 0;
  given_count_ = 0;

  // What the block defined is not in the file and must be defined again.
  if (last_write_failed_) Restart();
}

// What was accepted and did not reach the file after all.
void CaptureWriter::Impl::TakeBack(const BlockCounts& lost) {
  sequence_ -= lost.blocks;
  events_in_file_ -= lost.events;
  events_written_ -= lost.given_events;
  bytes_written_ -= lost.bytes;
  events_lost_ += lost.given_events;
}

void CaptureWriter::Impl::RestartIfDue() {
  const size_t entries = std::max(strings_.size(), stacks_.size());
  if (bytes_since_restart_ >= options_.restate_bytes || entries >= kMaxTableEntries) Restart();
}

void CaptureWriter::Impl::Restart() {
  strings_.Restart();
  stacks_.Restart();
  ++tables_number_;
  bytes_since_restart_ = 0;
  restate_due_ = true;
}

Status CaptureWriter::Impl::TakeError() {
  if (!error_) return Ok();
  Error error = std::move(*error_);
  error_.reset();
  return error;
}

Status CaptureWriter::Impl::Flush() {
  CloseBlock();
  RestartIfDue();
  return TakeError();
}

Status CaptureWriter::Impl::Close() {
  Status status = Flush();
  Status closed = output_->Close();
  TakeBack(output_->TakeLost());
  return closed.ok() ? std::move(status) : std::move(closed);
}

// ---- the interface
// -------------------------------------------------------------------------------

Result<CaptureWriter> CaptureWriter::Create(std::unique_ptr<BlockOutput> output, Options options) {
  XPU_ASSIGN_OR_RETURN(const uint64_t capture_id, DrawCaptureId());
  auto impl = std::make_unique<Impl>(std::move(output), options, capture_id);
  XPU_RETURN_IF_ERROR(impl->WriteHeader());
  return CaptureWriter(std::move(impl));
}

Result<CaptureWriter> CaptureWriter::Create(UniqueFd fd, std::string name, Options options) {
  return Create(std::make_unique<FdOutput>(std::move(fd), std::move(name)), options);
}

Result<CaptureWriter> CaptureWriter::NextPart(std::unique_ptr<BlockOutput> output) {
  XPU_ASSIGN_OR_RETURN(CaptureWriter next, Create(std::move(output), impl_->options()));
  next.impl_->BeginPart(*impl_);
  return next;
}

CaptureWriter CaptureWriter::Continue(UniqueFd fd, std::string name, const CaptureEnd& end) {
  auto output = std::make_unique<FdOutput>(std::move(fd), std::move(name));
  auto impl = std::make_unique<Impl>(std::move(output), Options{}, end.capture_id);
  impl->ContinueAt(end);
  return CaptureWriter(std::move(impl));
}

CaptureWriter::CaptureWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CaptureWriter::CaptureWriter(CaptureWriter&&) noexcept = default;
CaptureWriter& CaptureWriter::operator=(CaptureWriter&&) noexcept = default;
CaptureWriter::~CaptureWriter() = default;

StringId CaptureWriter::InternString(std::string_view text) { return impl_->InternString(text); }
StackId CaptureWriter::InternStack(std::span<const Frame> innermost_first) {
  return impl_->InternStack(innermost_first);
}
uint64_t CaptureWriter::TablesNumber() { return impl_->TablesNumber(); }
std::string_view CaptureWriter::TextOf(StringId id) const { return impl_->TextOf(id); }
StackNode CaptureWriter::NodeOf(StackId id) const { return impl_->NodeOf(id); }
void CaptureWriter::SetLiveState(LiveState* live) { impl_->SetLiveState(live); }
void CaptureWriter::SetRestating(bool restating) { impl_->SetRestating(restating); }
Status CaptureWriter::Flush() { return impl_->Flush(); }
Status CaptureWriter::Close() { return impl_->Close(); }
bool CaptureWriter::is_writable() const { return impl_->is_writable(); }
uint64_t CaptureWriter::bytes_written() const { return impl_->bytes_written(); }
uint64_t CaptureWriter::events_written() const { return impl_->events_written(); }
uint64_t CaptureWriter::events_lost() const { return impl_->events_lost(); }

template <typename Event>
Status CaptureWriter::Write(const Event& event) {
  return impl_->Write(event);
}

#define XPU_WRITE(event, list) template Status CaptureWriter::Write(const event&);
XPU_EVENT_LISTS(XPU_WRITE)
#undef XPU_WRITE

}  // namespace xpu
