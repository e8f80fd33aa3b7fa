// A cache of earlier stack walks: the rules of each walk one after another, so that a launch does
// not search the unwind tables for every frame. The same call usually comes again with the same
// stack pointer; where a walk leaves its cached walk, another cached walk or the tables continue
// it. A cached rule is as good as the table's: nothing is taken over from the earlier stack but its
// number, and that only if every frame was the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "symbolize/unwind/unwind_table.h"

namespace xpu::inject {

class WalkCache {
  struct Set;

 public:
  // Frames; of a deeper walk the innermost.
  static constexpr uint32_t kMaxSteps = 126;
  static constexpr uint32_t kWalksPerSet = 4;
  static constexpr uint32_t kSets = 256;

  struct Step {
    uint64_t address;  // that was looked up
    UnwindRule rule;
  };
  struct CachedWalk {
    uint64_t how;    // the walk ended; the caller's business
    uint32_t stack;  // the walk's number; 0: it has none yet
    uint32_t count;  // of steps; 0: free
    Step steps[kMaxSteps];
  };

  // False: no memory.
  bool Open();
  void Close();

  // One walk. Where another one is using the walks of its stack pointer it has none, and finds
  // nothing.
  class Use {
   public:
    // `generation`: as of RuleCache; what is of another one is forgotten.
    Use(WalkCache& walks, uint64_t sp, uint64_t generation);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

    // For each frame in turn. False: no cached walk has it here; then Add says what it is, or
    // AddOther that it has no rule.
    bool Find(uint64_t address, UnwindRule* rule) {
      const uint32_t at = step_++;
      if (cached_ == nullptr || at >= cached_->count || cached_->steps[at].address != address) {
        return FindInOthers(at, address, rule);
      }
      *rule = cached_->steps[at].rule;
      if (made_ != nullptr) made_->steps[at] = cached_->steps[at];
      return true;
    }
    void Add(uint64_t address, UnwindRule rule) { Note({address, rule}); }
    void AddOther() {
      is_whole_ = false;
      Note({kNoAddress, {}});
    }

    // The number of the stack that was walked, of a walk that ended so; 0: not known.
    uint32_t StackOf(uint64_t how) const;
    // The recorder knows the number.
    void SetStack(uint64_t how, uint32_t stack);

   private:
    static constexpr uint64_t kNoAddress = UINT64_MAX;

    bool FindInOthers(uint32_t at, uint64_t address, UnwindRule* rule);
    bool IsSameBefore(uint32_t at, const CachedWalk& other) const;
    void Note(const Step& step);
    void Make(uint32_t at, const CachedWalk* other);
    // The whole walk as it is cached, or nullptr.
    CachedWalk* Whole() const;

    Set* set_ = nullptr;
    CachedWalk* cached_ = nullptr;  // that the walk follows
    CachedWalk* made_ = nullptr;    // of this walk, where it is like none
    uint32_t step_ = 0;
    bool is_whole_ = true;  // every frame has a rule
  };

 private:
  Set* sets_ = nullptr;
};

}  // namespace xpu::inject
