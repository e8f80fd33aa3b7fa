#include "format/definitions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/intern.h"

namespace xpu {

bool IdRanges::CanAdd(uint32_t first_id, uint32_t count) const {
  if (count == 0) return true;
  const uint32_t lowest = ranges_.empty() ? kFirstDefinedId : ranges_.back().end_id;
  return first_id >= lowest && count <= UINT32_MAX - first_id && count <= UINT32_MAX - next_place_;
}

void IdRanges::Add(uint32_t first_id, uint32_t count) {
  if (count == 0) return;
  if (!ranges_.empty() && ranges_.back().end_id == first_id) {
    ranges_.back().end_id += count;
  } else {
    ranges_.push_back({first_id, first_id + count, next_place_});
  }
  next_place_ += count;
}

uint32_t IdRanges::PlaceOf(uint32_t id) const {
  const auto above =
      std::upper_bound(ranges_.begin(), ranges_.end(), id,
                       [](uint32_t value, const Range& range) { return value < range.first_id; });
  if (above == ranges_.begin()) return kLostString.value;
  const Range& range = *std::prev(above);
  return id < range.end_id ? range.first_place + (id - range.first_id) : kLostString.value;
}

Definitions::Definitions()
    : strings_({"", "[lost]"}),
      nodes_(kLostStack.value + 1),
      paths_({{.frames = 0, .is_whole = true}, {.frames = 0, .is_whole = false}}) {}

bool Definitions::Add(BlockContent& content, uint64_t limit_bytes) {
  const uint64_t bytes = content.string_bytes.size() +
                         content.string_sizes.size() * sizeof(std::string_view) +
                         content.stack_nodes.size() * (sizeof(StackNode) + sizeof(Path));
  if (bytes > limit_bytes || table_bytes_ > limit_bytes - bytes) return false;

  const auto strings = static_cast<uint32_t>(content.string_sizes.size());
  const auto nodes = static_cast<uint32_t>(content.stack_nodes.size());
  if (!string_ranges_.CanAdd(content.first_string, strings)) return false;
  if (!stack_ranges_.CanAdd(content.first_stack, nodes)) return false;
  string_ranges_.Add(content.first_string, strings);
  stack_ranges_.Add(content.first_stack, nodes);
  table_bytes_ += bytes;
  AddStrings(content);
  AddStackNodes(content);
  return true;
}

void Definitions::AddStrings(BlockContent& content) {
  if (content.string_sizes.empty()) return;
  std::string_view rest = string_bytes_.emplace_back(std::move(content.string_bytes));
  for (uint32_t size : content.string_sizes) {
    strings_.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
}

void Definitions::AddStackNodes(BlockContent& content) {
  for (StackNode node : content.stack_nodes) {
    if (node.caller) node.caller.value = stack_ranges_.PlaceOf(node.caller.value);
    if (paths_[node.caller.value].frames >= kMaxStackFrames) node.caller = kLostStack;
    const Path& caller = paths_[node.caller.value];
    paths_.push_back({static_cast<uint16_t>(caller.frames + 1), caller.is_whole});
    nodes_.push_back(node);
  }
}

StringId Definitions::ToReader(StringId id) {
  const StringId place{string_ranges_.PlaceOf(id.value)};
  if (place == kLostString) ++references_lost_;
  return place;
}

StackId Definitions::ToReader(StackId id) {
  const StackId place{stack_ranges_.PlaceOf(id.value)};
  if (!paths_[place.value].is_whole) ++references_lost_;
  return place;
}

std::string_view Definitions::String(StringId id) const {
  return id.value < strings_.size() ? strings_[id.value] : strings_[kLostString.value];
}

const StackNode& Definitions::Node(StackId id) const {
  return id.value < nodes_.size() ? nodes_[id.value] : nodes_[kLostStack.value];
}

}  // namespace xpu
