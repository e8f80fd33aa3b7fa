#include "cupti_inject/walk_guides.h"

#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {

struct alignas(64) WalkGuides::Set {
  std::atomic<bool> used;
  uint32_t last;  // that was followed
  uint32_t next;  // to be made anew
  uint64_t generation;
  Guide guides[kGuidesPerSet];
};

bool WalkGuides::Open() {
  sets_ = static_cast<Set*>(MapZeroed(kSets * sizeof(Set)));
  return sets_ != nullptr;
}

void WalkGuides::Close() {
  if (sets_ != nullptr) munmap(sets_, kSets * sizeof(Set));
  sets_ = nullptr;
}

WalkGuides::Use::Use(WalkGuides& guides, uint64_t sp, uint64_t generation) {
  constexpr uint32_t kSetBits = 8;
  static_assert(kSets == 1u << kSetBits);
  Set& set = guides.sets_[sp * 0x9e3779b97f4a7c15 >> (64 - kSetBits)];
  if (set.used.exchange(true, std::memory_order_acquire)) return;
  set_ = &set;
  if (set.generation != generation) {
    for (Guide& guide : set.guides) guide.count = 0;
    set.generation = generation;
  }
  guide_ = &set.guides[set.last];
}

WalkGuides::Use::~Use() {
  if (set_ == nullptr) return;
  if (made_ != nullptr) {
    made_->count = step_ < kMaxSteps ? step_ : kMaxSteps;
    guide_ = made_;
  }
  set_->last = static_cast<uint32_t>(guide_ - set_->guides);
  set_->used.store(false, std::memory_order_release);
}

bool WalkGuides::Use::IsSameBefore(uint32_t at, const Guide& other) const {
  return std::memcmp(guide_->steps, other.steps, at * sizeof(Step)) == 0;
}

bool WalkGuides::Use::FindInOthers(uint32_t at, uint64_t address, UnwindRule* rule) {
  if (set_ == nullptr) return false;
  for (Guide& other : set_->guides) {
    if (at >= other.count || other.steps[at].address != address) continue;
    *rule = other.steps[at].rule;
    if (made_ == nullptr && !IsSameBefore(at, other)) Make(at, &other);
    if (made_ != nullptr) made_->steps[at] = other.steps[at];
    guide_ = &other;
    return true;
  }
  return false;
}

void WalkGuides::Use::Note(const Step& step) {
  const uint32_t at = step_ - 1;
  if (set_ == nullptr || at >= kMaxSteps) return;
  if (made_ == nullptr) {
    if (at < guide_->count && guide_->steps[at].address == step.address) return;
    Make(at, nullptr);
  }
  made_->steps[at] = step;
}

// In the place of neither the guide that was followed so far nor `other`, which will be.
void WalkGuides::Use::Make(uint32_t at, const Guide* other) {
  do {
    set_->next = (set_->next + 1) % kGuidesPerSet;
    made_ = &set_->guides[set_->next];
  } while (made_ == guide_ || made_ == other);
  made_->count = 0;
  made_->stack = 0;
  std::memcpy(made_->steps, guide_->steps, at * sizeof(Step));
}

WalkGuides::Guide* WalkGuides::Use::Whole() const {
  if (set_ == nullptr || !is_whole_ || step_ > kMaxSteps) return nullptr;
  if (made_ != nullptr) return made_;
  return guide_->count == step_ ? guide_ : nullptr;
}

uint32_t WalkGuides::Use::StackOf(uint64_t how) const {
  const Guide* guide = Whole();
  return guide != nullptr && guide->how == how ? guide->stack : 0;
}

void WalkGuides::Use::SetStack(uint64_t how, uint32_t stack) {
  Guide* guide = Whole();
  if (guide == nullptr) return;
  guide->how = how;
  guide->stack = stack;
}

}  // namespace xpu::inject
