#include "format/reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "format/base/file.h"
#include "format/base/text.h"
#include "format/block.h"
#include "format/definitions.h"
#include "format/message.h"

namespace xpu {
namespace {

// How far into a file without a file header a block may begin for it still to be a capture.
constexpr size_t kSearchWithoutHeaderBytes = size_t{8} << 20;
// The tables of strings and stacks may take this much, and so much more for each byte of the file
// (here and below: those in its holes take no room and count for nothing).
constexpr uint64_t kTableBytes = uint64_t{64} << 20;
constexpr uint64_t kTableBytesPerFileByte = 256;
// So many events are read at most, and so many more for each byte of the file: what pads a message
// takes none of them. Recordings take 2 bytes an event and more.
constexpr uint64_t kFreeEvents = uint64_t{2} << 20;
constexpr uint64_t kEventsPerFileByte = 4;

uint64_t Beyond(uint64_t number, uint64_t bound) { return number > bound ? number - bound : 0; }

Error NotACapture(const std::string& name) {
  return Error{ErrorKind::kInvalid, Format("{}: not an xpu capture", name),
               "xpu-record writes captures; the default name is capture.xpu"};
}

// The program that unpacks the file; empty: it is not compressed as a whole.
std::string_view UnpackerOf(std::span<const std::byte> file) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMagics = {{
      {"\x1f\x8b", "gunzip"},
      {"\x28\xb5\x2f\xfd", "unzstd"},
      {"\xfd\x37zXZ", "unxz"},
      {"BZh", "bunzip2"},
  }};
  const std::string_view begin(reinterpret_cast<const char*>(file.data()), file.size());
  for (const auto& [magic, unpacker] : kMagics) {
    if (begin.starts_with(magic)) return unpacker;
  }
  return {};
}

Error Compressed(const std::string& name, std::string_view unpacker) {
  const std::string command = name == "/dev/stdin" ? Format("{} -c FILE | xpu-report -", unpacker)
                                                   : Format("{} {}", unpacker, name);
  return Error{ErrorKind::kInvalid, Format("{}: a compressed file, not a capture", name),
               Format("decompress it first: {} (captures are compressed already)", command)};
}

Error NeedsNewer(const std::string& name, const std::string& what, const std::string& writer) {
  return Error{
      ErrorKind::kUnsupported, Format("{}: needs a newer xpu: {}", name, what),
      Format("it was written by {}; this is xpu {}", writer.empty() ? "?" : writer, XPU_VERSION)};
}

// The feature names that this version does not know: all of them, until there is one.
std::string UnknownFeatures(const FileHeader& header) { return header.features; }

}  // namespace

class CaptureReader::Impl {
 public:
  Impl(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), data_{{0, bytes.size()}}, name_(std::move(name)) {
    data_bytes_ = bytes.size();
  }
  Impl(FileBytes file, std::string name) : file_(std::move(file)), name_(std::move(name)) {
    bytes_ = file_->bytes();
    data_.assign(file_->data().begin(), file_->data().end());
    for (const ByteRange& part : data_) data_bytes_ += part.end - part.begin;
  }

  Status ReadHeader();
  std::optional<EventBatch> Next();
  const Definitions& definitions() const { return definitions_; }
  const ReadProblems& problems() const { return problems_; }
  uint64_t data_bytes() const { return data_bytes_; }

 private:
  Status FindBlocksWithoutHeader(FileHeaderState state);
  bool FindFirstBlock(size_t limit);
  std::optional<EventBatch> ReadBlockAt(size_t at);
  std::optional<EventBatch> DecodeBlock(const BlockHeader& header,
                                        std::span<const std::byte> payload);
  void NoteRead(const BlockHeader& header, size_t at);
  void NoteEnd();

  std::optional<FileBytes> file_;  // empty: the bytes are the caller's
  std::span<const std::byte> bytes_;
  std::vector<ByteRange> data_;
  uint64_t data_bytes_ = 0;
  const std::string name_;
  uint64_t capture_id_ = 0;
  BlockDecoder decoder_;
  Definitions definitions_;
  ReadProblems problems_;

  size_t position_ = 0;  // where to look for the next block
  size_t read_end_ = 0;  // after the last block that was read
  uint64_t last_sequence_ = 0;
  uint64_t events_seen_ = 0;  // events in the blocks up to the last one that was read
  uint64_t events_read_ = 0;  // that is, decoded
  uint64_t definitions_read_ = 0;
  uint64_t raw_bytes_read_ = 0;  // of their messages
  uint64_t searched_bytes_ = 0;  // of payloads that were not those of their headers
  // The last block whose header is whole and whose content was not read, since one was read.
  std::optional<BlockHeader> unread_;
  bool unread_is_cut_ = false;
  bool ended_ = false;
};

Status CaptureReader::Impl::ReadHeader() {
  if (bytes_.empty()) {
    return Error{ErrorKind::kInvalid, Format("{}: the file is empty", name_),
                 "was xpu-record killed when it started, or was the disk full?"};
  }
  const ParsedFileHeader parsed = ParseFileHeader(bytes_);
  const FileHeader& header = parsed.header;
  if (parsed.state == FileHeaderState::kNewer) {
    return NeedsNewer(name_, Format("container version {}", parsed.container_version),
                      header.writer);
  }
  if (parsed.state != FileHeaderState::kWhole) return FindBlocksWithoutHeader(parsed.state);
  if (header.generation > kReaderGeneration) {
    return NeedsNewer(name_,
                      Format("generation {}, this one is {}", header.generation, kReaderGeneration),
                      header.writer);
  }
  if (const std::string unknown = UnknownFeatures(header); !unknown.empty()) {
    return NeedsNewer(name_, Format("one that supports: {}", unknown), header.writer);
  }
  capture_id_ = header.capture_id;
  position_ = read_end_ = parsed.size_bytes;
  return Ok();
}

Status CaptureReader::Impl::FindBlocksWithoutHeader(FileHeaderState state) {
  const bool has_magic = state != FileHeaderState::kAbsent;
  // Whole blocks may be in it: what is compressed already is often stored as it is.
  if (const std::string_view unpacker = UnpackerOf(bytes_); !has_magic && !unpacker.empty()) {
    return Compressed(name_, unpacker);
  }
  problems_.header_damaged = true;
  if (FindFirstBlock(has_magic ? bytes_.size() : kSearchWithoutHeaderBytes)) return Ok();
  if (state == FileHeaderState::kCut) {
    return Error{ErrorKind::kInvalid,
                 Format("{}: ends inside its header, after {} bytes", name_, bytes_.size()),
                 "was xpu-record killed when it started, or was the disk full?"};
  }
  return NotACapture(name_);
}

// One that begins before `limit`.
bool CaptureReader::Impl::FindFirstBlock(size_t limit) {
  const auto searched = bytes_.first(std::min(bytes_.size(), limit + kBlockHeaderBytes - 1));
  for (size_t at = FindBlockMagic(searched, data_, 0); at < searched.size();
       at = FindBlockMagic(searched, data_, at + 1)) {
    if (const auto header = ParseBlockHeader(searched.subspan(at))) {
      capture_id_ = header->capture_id;
      position_ = at;
      return true;
    }
  }
  return false;
}

std::optional<EventBatch> CaptureReader::Impl::Next() {
  while (position_ < bytes_.size()) {
    const size_t at = FindBlockMagic(bytes_, data_, position_);
    if (at == bytes_.size()) break;
    position_ = at + 1;
    if (auto events = ReadBlockAt(at)) return events;
  }
  position_ = bytes_.size();
  if (!std::exchange(ended_, true)) NoteEnd();
  return std::nullopt;
}

std::optional<EventBatch> CaptureReader::Impl::ReadBlockAt(size_t at) {
  const auto header = ParseBlockHeader(bytes_.subspan(at));
  if (!header) return std::nullopt;  // the magic occurred in damaged bytes
  // Of another capture or one that was read: files that were put together, or a capture inside a
  // text of this one.
  if (header->capture_id != capture_id_) problems_.captures_follow = true;
  if (header->capture_id != capture_id_ || header->sequence <= last_sequence_) return std::nullopt;
  const auto rest = bytes_.subspan(at + kBlockHeaderBytes);
  const auto payload = rest.first(std::min<size_t>(rest.size(), header->stored_bytes));
  unread_is_cut_ = payload.size() < header->stored_bytes;
  if (unread_is_cut_ || !IsPayloadOf(*header, payload)) {
    unread_ = header;
    // The next block may begin inside, where a write failed half-way. A file made to be slow
    // would let every byte be part of very many payloads.
    searched_bytes_ += payload.size();
    if (searched_bytes_ > kSearchesPerByte * data_bytes_) position_ += payload.size();
    return std::nullopt;
  }
  position_ = at + kBlockHeaderBytes + payload.size();
  std::optional<EventBatch> events = DecodeBlock(*header, payload);
  if (events) {
    NoteRead(*header, at);
  } else {
    unread_ = header;
  }
  return events;
}

std::optional<EventBatch> CaptureReader::Impl::DecodeBlock(const BlockHeader& header,
                                                           std::span<const std::byte> payload) {
  if (header.generation > kReaderGeneration) {
    problems_.unknown_events += header.events;
    return EventBatch{};
  }
  const uint64_t events = events_read_ + header.events;
  if (events > kFreeEvents + kEventsPerFileByte * data_bytes_ ||
      events > kEventsWithoutBytes + raw_bytes_read_ + header.raw_bytes) {
    return std::nullopt;
  }
  const auto message = decoder_.Decode(header, payload);
  if (!message) return std::nullopt;
  auto content = DecodeMessage(*message, header.events);
  if (!content) return std::nullopt;
  const uint64_t definitions =
      definitions_read_ + content->string_sizes.size() + content->stack_nodes.size();
  if (definitions > kDefinitionsWithoutBytes + raw_bytes_read_ + header.raw_bytes) {
    return std::nullopt;
  }
  const uint64_t table_limit = kTableBytes + kTableBytesPerFileByte * data_bytes_;
  if (!definitions_.Add(*content, table_limit)) return std::nullopt;
  TranslateIds(content->events, definitions_);
  problems_.references_lost = definitions_.references_lost();
  problems_.unknown_events += header.events - CountEvents(content->events);
  events_read_ = events;
  definitions_read_ = definitions;
  raw_bytes_read_ += header.raw_bytes;
  return std::move(content->events);
}

void CaptureReader::Impl::NoteRead(const BlockHeader& header, size_t at) {
  ++problems_.blocks_read;
  problems_.blocks_damaged += header.sequence - last_sequence_ - 1;
  problems_.events_lost += Beyond(header.events_before, events_seen_);
  problems_.bytes_skipped += at - read_end_;
  last_sequence_ = header.sequence;
  events_seen_ = header.events_before + header.events;
  read_end_ = position_;
  unread_.reset();
}

// What follows the last block that was read: nothing, a cut block, or damaged ones.
void CaptureReader::Impl::NoteEnd() {
  const auto rest = bytes_.subspan(read_end_);
  if (rest.empty()) return;
  problems_.bytes_skipped += rest.size();
  if (unread_) {
    problems_.cut = unread_is_cut_;
    problems_.blocks_damaged += unread_->sequence - last_sequence_ - (unread_is_cut_ ? 1 : 0);
    problems_.events_lost += Beyond(unread_->events_before + unread_->events, events_seen_);
  } else if (BeginsBlockHeader(rest)) {
    problems_.cut = true;
  } else if (ParseFileHeader(rest).state != FileHeaderState::kAbsent) {
    problems_.captures_follow = true;
  } else {
    ++problems_.blocks_damaged;
  }
}

// ---- the interface
// -------------------------------------------------------------------------------

Result<CaptureReader> CaptureReader::Open(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(FileBytes file, FileBytes::Open(path, kFileMagic));
  auto impl = std::make_unique<Impl>(std::move(file), path);
  XPU_RETURN_IF_ERROR(impl->ReadHeader());
  return CaptureReader(std::move(impl));
}

Result<CaptureReader> CaptureReader::FromBytes(std::span<const std::byte> bytes, std::string name) {
  auto impl = std::make_unique<Impl>(bytes, std::move(name));
  XPU_RETURN_IF_ERROR(impl->ReadHeader());
  return CaptureReader(std::move(impl));
}

CaptureReader::CaptureReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CaptureReader::CaptureReader(CaptureReader&&) noexcept = default;
CaptureReader& CaptureReader::operator=(CaptureReader&&) noexcept = default;
CaptureReader::~CaptureReader() = default;

std::optional<EventBatch> CaptureReader::Next() { return impl_->Next(); }
std::string_view CaptureReader::String(StringId id) const {
  return impl_->definitions().String(id);
}
StackNode CaptureReader::Node(StackId id) const { return impl_->definitions().Node(id); }
bool CaptureReader::IsLost(StackId id) const {
  return id == kLostStack || id.value >= stack_bound();
}
uint32_t CaptureReader::stack_bound() const { return impl_->definitions().stack_bound(); }

std::vector<Frame> CaptureReader::Stack(StackId id) const {
  std::vector<Frame> frames;
  while (id && !IsLost(id)) {
    const StackNode& node = impl_->definitions().Node(id);
    frames.push_back(node.frame);
    id = node.caller;
  }
  return frames;
}

const ReadProblems& CaptureReader::problems() const { return impl_->problems(); }
uint64_t CaptureReader::data_bytes() const { return impl_->data_bytes(); }

}  // namespace xpu
