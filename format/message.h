// The content of a block, and its Cap'n Proto message. message.cpp is the only file that sees
// Cap'n Proto's messages and catches its exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/events.h"

namespace xpu {

inline constexpr uint32_t kMaxDefinitionsPerBlock = 262144;  // of strings, and of stack nodes

// Ids are those of the file.
struct BlockContent {
  uint32_t first_string = 0;
  std::vector<uint32_t> string_sizes;
  std::string string_bytes;  // one after the other

  uint32_t first_stack = 0;
  std::vector<StackNode> stack_nodes;

  EventBatch events;
};

size_t CountEvents(const EventBatch& events);

// 8-byte aligned. Fits kMaxRawBytes when the content keeps to the upper bounds below.
std::vector<uint64_t> EncodeMessage(const BlockContent& content);

// The most bytes of a message that one event, one stack node, one string add, and an empty block.
template <typename Event>
consteval size_t UpperBoundOfEvent() {
  size_t bytes = 0;
  Event event;
  // A difference of two 32-bit numbers has 33 bits.
  VisitFields(event, [&bytes](const char*, auto& field) {
    bytes += sizeof(field) < sizeof(uint64_t) ? sizeof(field) + 1 : sizeof(uint64_t);
  });
  return bytes;
}
inline constexpr size_t kUpperBoundOfStackNode = 16;
inline constexpr size_t kUpperBoundOfStringSize = 8;
inline constexpr size_t kUpperBoundOfBlock = size_t{96} << 10;

// nullopt: not a message that a writer makes. `events_limit`: the block's own count of events; more
// are refused, fewer mean kinds of events that this version does not know.
std::optional<BlockContent> DecodeMessage(std::span<const std::byte> message,
                                          uint32_t events_limit);

// Translates the ids of a file to those of the reader.
class IdTranslation {
 public:
  virtual StringId ToReader(StringId id) = 0;
  virtual StackId ToReader(StackId id) = 0;

 protected:
  ~IdTranslation() = default;
};
void TranslateIds(EventBatch& events, IdTranslation& translation);

}  // namespace xpu
