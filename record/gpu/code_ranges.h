// Which files the loader of one process had mapped where, at each time that is still asked
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace xpu {

struct CodeRange {
  uint64_t end = 0;
  uint64_t bias = 0;  // address minus link address
  uint32_t file = 0;  // its number
};

class CodeRanges {
 public:
  class Version {
   public:
    // nullptr: the address is in no file.
    const CodeRange* Find(uint64_t address) const;
    // Of memory, about.
    uint64_t Cost() const { return ranges_.size() * 96; }

   private:
    friend class CodeRanges;
    std::map<uint64_t, CodeRange> ranges_;  // by start
  };

  // What was there is gone: true where it was another one.
  bool Add(uint64_t start, const CodeRange& range);
  void Remove(uint64_t start);
  // Stays as it is.
  std::shared_ptr<const Version> now() const { return now_; }

 private:
  std::map<uint64_t, CodeRange>& ForWriting();

  static constexpr size_t kMaxRanges = 8192;  // more are not kept

  std::shared_ptr<Version> now_ = std::make_shared<Version>();
};

}  // namespace xpu
