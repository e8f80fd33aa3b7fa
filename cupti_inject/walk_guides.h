// Walks that were made before, to guide those that come: the rules of a walk one behind the other,
// where the table of rules would be read all over at each launch. The same call mostly comes again
// with the same stack pointer; from where a walk leaves its guide, another guide or the table goes
// on. What a guide says of an address is as good as what the table says: nothing of the stack is
// taken from it but its number, and that only where every frame was the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "symbolize/unwind/unwind_table.h"

namespace xpu::inject {

class WalkGuides {
  struct Set;

 public:
  // Frames; of a deeper walk the innermost.
  static constexpr uint32_t kMaxSteps = 126;
  static constexpr uint32_t kGuidesPerSet = 4;
  static constexpr uint32_t kSets = 256;

  struct Step {
    uint64_t address;  // that was looked up
    UnwindRule rule;
  };
  struct Guide {
    uint64_t how;    // the walk ended; the caller's business
    uint32_t stack;  // the walk's number; 0: it has none yet
    uint32_t count;  // of steps; 0: free
    Step steps[kMaxSteps];
  };

  // False: no memory.
  bool Open();
  void Close();

  // One walk. Where another one is using the guides of its stack pointer it has none, and finds
  // nothing.
  class Use {
   public:
    // `generation`: as of RuleCache; what is of another one is forgotten.
    Use(WalkGuides& guides, uint64_t sp, uint64_t generation);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

    // For each frame in turn. False: no guide knows it here; then Add says what it is, or AddOther
    // that it has no rule.
    bool Find(uint64_t address, UnwindRule* rule) {
      const uint32_t at = step_++;
      if (guide_ == nullptr || at >= guide_->count || guide_->steps[at].address != address) {
        return FindInOthers(at, address, rule);
      }
      *rule = guide_->steps[at].rule;
      if (made_ != nullptr) made_->steps[at] = guide_->steps[at];
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
    bool IsSameBefore(uint32_t at, const Guide& other) const;
    void Note(const Step& step);
    void Make(uint32_t at, const Guide* other);
    // The whole walk as a guide has it, or nullptr.
    Guide* Whole() const;

    Set* set_ = nullptr;
    Guide* guide_ = nullptr;  // that the walk follows
    Guide* made_ = nullptr;   // of this walk, where it is like none
    uint32_t step_ = 0;
    bool is_whole_ = true;  // every frame has a rule
  };

 private:
  Set* sets_ = nullptr;
};

}  // namespace xpu::inject
