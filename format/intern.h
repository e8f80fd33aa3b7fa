// The writer's tables: each text and each frame with its callers gets an id once. New entries
// collect in `pending` until the block that defines them is closed.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/stack.h"

namespace xpu {

inline constexpr uint32_t kFirstDefinedId = 2;              // 0 is none, 1 is lost
inline constexpr uint32_t kLastDefinedId = UINT32_MAX - 1;  // ids are used up after it
// Longer texts are cut. With the largest block of 4 MiB, one always fits.
inline constexpr size_t kMaxStringBytes = size_t{1} << 20;
// Deeper stacks keep their innermost frames. The reader refuses deeper ones, so that a hostile file
// cannot make each of many events cost a walk of a million frames.
inline constexpr size_t kMaxStackFrames = 2048;

class StringTable {
 public:
  StringId Intern(std::string_view text);
  // "" for an id that was not given out since Restart().
  std::string_view Text(StringId id) const;

  size_t size() const { return texts_.size(); }
  uint32_t next_id() const { return first_id_ + static_cast<uint32_t>(texts_.size()); }
  uint32_t first_pending() const { return first_pending_; }
  size_t pending_count() const { return next_id() - first_pending_; }
  size_t pending_bytes() const { return pending_bytes_; }
  void TakePending(std::vector<uint32_t>& sizes, std::string& bytes);
  // Forgets all texts; ids go on upwards.
  void Restart();
  // The first id to give out; before the first Intern.
  void StartAt(uint32_t id) { first_id_ = first_pending_ = id; }

 private:
  uint32_t first_id_ = kFirstDefinedId;
  uint32_t first_pending_ = kFirstDefinedId;
  size_t pending_bytes_ = 0;
  std::deque<std::string> texts_;  // of first_id_, ...; a deque keeps them in place
  std::unordered_map<std::string_view, StringId> ids_;
};

class StackTable {
 public:
  StackId Intern(std::span<const Frame> innermost_first);
  // Without a caller and at address 0 for an id that was not given out since Restart().
  StackNode Node(StackId id) const;

  size_t size() const { return nodes_.size(); }
  uint32_t next_id() const { return first_id_ + static_cast<uint32_t>(nodes_.size()); }
  uint32_t first_pending() const { return first_pending_; }
  size_t pending_count() const { return next_id() - first_pending_; }
  std::vector<StackNode> TakePending();
  void Restart();
  void StartAt(uint32_t id) { first_id_ = first_pending_ = id; }

 private:
  struct Hash {
    size_t operator()(const StackNode& node) const;
  };
  struct Equal {
    bool operator()(const StackNode& a, const StackNode& b) const {
      return a.caller == b.caller && a.frame == b.frame;
    }
  };
  // True when the path of `id` is exactly these frames.
  bool IsPath(StackId id, std::span<const Frame> innermost_first) const;

  uint32_t first_id_ = kFirstDefinedId;
  uint32_t first_pending_ = kFirstDefinedId;
  std::vector<StackNode> nodes_;  // of first_id_, ...
  std::unordered_map<StackNode, StackId, Hash, Equal> ids_;
  // Hash of a whole stack -> its node: most stacks were seen before, and comparing the frames is an
  // order of magnitude cheaper than looking each of them up.
  std::unordered_map<uint64_t, StackId> recent_;
};

}  // namespace xpu
