// The files that the dynamic loader of one process had mapped, as a set of immutable versions: a
// stack copy keeps the version of the moment in which it was taken for as long as it waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace xpu {

struct CodeRange {
  uint64_t end = 0;
  uint64_t bias = 0;  // address minus link address
  uint32_t file = 0;  // index of the file
};

class CodeRanges {
 public:
  class Version {
   public:
    // Returns nullptr if no file is mapped at the address.
    const CodeRange* Find(uint64_t address) const;
    // Estimated memory in bytes.
    uint64_t Cost() const { return ranges_.size() * 96; }

   private:
    friend class CodeRanges;
    std::map<uint64_t, CodeRange> ranges_;  // by start
  };

  // Replaces overlapping ranges.
  void Add(uint64_t start, const CodeRange& range);
  void Remove(uint64_t start);
  // The returned version never changes: the next Add or Remove works on a copy.
  std::shared_ptr<const Version> now() const { return now_; }

 private:
  std::map<uint64_t, CodeRange>& ForWriting();

  static constexpr size_t kMaxRanges = 8192;  // more are not kept

  std::shared_ptr<Version> now_ = std::make_shared<Version>();
};

}  // namespace xpu
