#include "format/intern.h"

#include <algorithm>

namespace xpu {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

uint64_t HashOf(std::span<const Frame> frames) {
  uint64_t hash = frames.size();
  for (const Frame& frame : frames) {
    hash = Mix(hash, frame.address + static_cast<uint64_t>(frame.kind));
  }
  return hash;
}

}  // namespace

StringId StringTable::Intern(std::string_view text) {
  if (text.empty()) return {};
  text = text.substr(0, kMaxStringBytes);
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  if (next_id() > kLastDefinedId) return kLostString;
  const StringId id{next_id()};
  pending_bytes_ += text.size();
  ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

std::string_view StringTable::Text(StringId id) const {
  if (id.value < first_id_ || id.value >= next_id()) return {};
  return texts_[id.value - first_id_];
}

void StringTable::TakePending(std::vector<uint32_t>& sizes, std::string& bytes) {
  for (uint32_t id = first_pending_; id < next_id(); ++id) {
    const std::string& text = texts_[id - first_id_];
    sizes.push_back(static_cast<uint32_t>(text.size()));
    bytes += text;
  }
  first_pending_ = next_id();
  pending_bytes_ = 0;
}

void StringTable::Restart() {
  first_id_ = first_pending_ = next_id();
  pending_bytes_ = 0;
  ids_.clear();
  texts_.clear();
}

size_t StackTable::Hash::operator()(const StackNode& node) const {
  return Mix(Mix(node.caller.value, node.frame.address), static_cast<uint64_t>(node.frame.kind));
}

bool StackTable::IsPath(StackId id, std::span<const Frame> innermost_first) const {
  for (const Frame& frame : innermost_first) {
    if (!id) return false;
    const StackNode& node = nodes_[id.value - first_id_];
    if (node.frame != frame) return false;
    id = node.caller;
  }
  return !id;
}

StackId StackTable::Intern(std::span<const Frame> innermost_first) {
  innermost_first = innermost_first.first(std::min(innermost_first.size(), kMaxStackFrames));
  if (innermost_first.empty()) return {};
  StackId& recent = recent_[HashOf(innermost_first)];
  if (recent && IsPath(recent, innermost_first)) return recent;

  if (next_id() > kLastDefinedId - kMaxStackFrames) return kLostStack;

  StackId caller;
  for (size_t i = innermost_first.size(); i-- > 0;) {
    const StackNode node{caller, innermost_first[i]};
    const auto [entry, is_new] = ids_.try_emplace(node, StackId{next_id()});
    if (is_new) nodes_.push_back(node);
    caller = entry->second;
  }
  recent = caller;
  return caller;
}

StackNode StackTable::Node(StackId id) const {
  const uint32_t index = id.value - first_id_;
  return id.value >= first_id_ && index < nodes_.size() ? nodes_[index] : StackNode{};
}

std::vector<StackNode> StackTable::TakePending() {
  std::vector<StackNode> pending(nodes_.begin() + (first_pending_ - first_id_), nodes_.end());
  first_pending_ = next_id();
  return pending;
}

void StackTable::Restart() {
  first_id_ = first_pending_ = next_id();
  nodes_.clear();
  ids_.clear();
  recent_.clear();
}

}  // namespace xpu
