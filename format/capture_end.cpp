#include "format/capture_end.h"

#include <algorithm>
#include <limits>

#include "format/base/text.h"
#include "format/block.h"
#include "format/intern.h"
#include "format/message.h"

namespace xpu {
namespace {

constexpr uint64_t kMaxId = kLastDefinedId;

// The ids of one table.
struct Ids {
  uint64_t next = kFirstDefinedId;

  void Skip(uint32_t first, size_t count) {
    if (count > 0) next = std::max<uint64_t>(next, uint64_t{first} + count);
  }
  // What a block defined that cannot be read.
  void SkipBlock() { next += kMaxDefinitionsPerBlock; }
};

}  // namespace

Result<CaptureEnd> FindCaptureEnd(std::span<const std::byte> capture, const std::string& name) {
  const ParsedFileHeader file = ParseFileHeader(capture);
  if (file.state != FileHeaderState::kWhole || file.header.generation > kReaderGeneration) {
    return Error{ErrorKind::kInvalid,
                 Format("{}: the header is damaged, so nothing can be added", name),
                 {}};
  }
  CaptureEnd end{.capture_id = file.header.capture_id};
  Ids strings;
  Ids stacks;
  BlockDecoder decoder;
  uint64_t searched_bytes = 0;
  for (size_t at = FindBlockMagic(capture, file.size_bytes); at < capture.size();) {
    const auto header = ParseBlockHeader(capture.subspan(at));
    size_t next = at + 1;
    if (header && header->capture_id == end.capture_id && header->sequence > end.sequence) {
      const uint64_t missing = header->sequence - end.sequence - 1;
      for (uint64_t i = 0; i < std::min<uint64_t>(missing, kMaxId / kMaxDefinitionsPerBlock); ++i) {
        strings.SkipBlock();
        stacks.SkipBlock();
      }
      end.sequence = header->sequence;
      end.events = header->events_before + header->events;
      const auto rest = capture.subspan(at + kBlockHeaderBytes);
      const auto payload = rest.first(std::min<size_t>(rest.size(), header->stored_bytes));
      const bool whole = IsPayloadOf(*header, payload);
      // The next block may begin inside a payload that is incomplete; a file made to be slow would
      // let every byte be part of very many.
      if (!whole) searched_bytes += payload.size();
      if (whole || searched_bytes > kSearchesPerByte * capture.size()) {
        next = at + kBlockHeaderBytes + payload.size();
      }
      const auto message = whole ? decoder.Decode(*header, payload) : std::nullopt;
      const auto content = message ? DecodeMessage(*message, header->events) : std::nullopt;
      if (content) {
        strings.Skip(content->first_string, content->string_sizes.size());
        stacks.Skip(content->first_stack, content->stack_nodes.size());
      } else {
        strings.SkipBlock();
        stacks.SkipBlock();
      }
    }
    at = FindBlockMagic(capture, next);
  }
  if (std::max(strings.next, stacks.next) > kMaxId) {
    return Error{
        ErrorKind::kInvalid, Format("{}: no ids are left, so nothing can be added", name), {}};
  }
  end.next_string = static_cast<uint32_t>(strings.next);
  end.next_stack = static_cast<uint32_t>(stacks.next);
  return end;
}

}  // namespace xpu
