// The reader's tables of strings and stack nodes.
//
// The ids that readers of a capture see are places in these tables, without gaps, whatever ids the
// file uses: whoever keeps an array by id needs no more memory than the file defines. In a whole
// file of one recorder both are the same numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "format/message.h"
#include "format/stack.h"

namespace xpu {

// Ids of a file -> places in a table. What blocks define are ranges of ascending ids.
class IdRanges {
 public:
  // False: some of these ids were defined before, or cannot be.
  bool CanAdd(uint32_t first_id, uint32_t count) const;
  void Add(uint32_t first_id, uint32_t count);
  // The place of an id, or that of lost ones.
  uint32_t PlaceOf(uint32_t id) const;
  uint32_t next_place() const { return next_place_; }

 private:
  struct Range {
    uint32_t first_id;
    uint32_t end_id;
    uint32_t first_place;
  };
  std::vector<Range> ranges_;  // ascending; adjoining ones are merged
  uint32_t next_place_ = 2;    // 0: none, 1: lost
};

class Definitions final : public IdTranslation {
 public:
  Definitions();

  // Takes what a block defines, or nothing of it and returns false: it defines an id again, or the
  // tables would grow beyond `limit_bytes`.
  bool Add(BlockContent& content, uint64_t limit_bytes);

  // Count what is lost.
  StringId ToReader(StringId id) override;
  StackId ToReader(StackId id) override;

  std::string_view String(StringId id) const;
  const StackNode& Node(StackId id) const;
  uint32_t stack_bound() const { return static_cast<uint32_t>(nodes_.size()); }
  uint64_t references_lost() const { return references_lost_; }

 private:
  struct Path {
    uint16_t frames;
    bool is_whole;  // no caller is lost
  };

  void AddStrings(BlockContent& content);
  void AddStackNodes(BlockContent& content);

  IdRanges string_ranges_;
  IdRanges stack_ranges_;
  std::deque<std::string> string_bytes_;   // of each block
  std::vector<std::string_view> strings_;  // by place, into string_bytes_
  std::vector<StackNode> nodes_;           // by place
  std::vector<Path> paths_;                // by place
  uint64_t table_bytes_ = 0;
  uint64_t references_lost_ = 0;
};

}  // namespace xpu
