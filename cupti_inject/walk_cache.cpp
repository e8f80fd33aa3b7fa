#include "cupti_inject/walk_cache.h"

#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {

struct alignas(64) WalkCache::Set {
  std::atomic<bool> used;
  uint32_t last;  // that was followed
  uint32_t next;  // to be made anew
  uint64_t generation;
  CachedWalk walks[kWalksPerSet];
};

bool WalkCache::Open() {
  sets_ = static_cast<Set*>(MapZeroed(kSets * sizeof(Set)));
  return sets_ != nullptr;
}

void WalkCache::Close() {
  if (sets_ != nullptr) munmap(sets_, kSets * sizeof(Set));
  sets_ = nullptr;
}

WalkCache::Use::Use(WalkCache& walks, uint64_t sp, uint64_t generation) {
  constexpr uint32_t kSetBits = 8;
  static_assert(kSets == 1u << kSetBits);
  Set& set = walks.sets_[sp * 0x9e3779b97f4a7c15 >> (64 - kSetBits)];
  if (set.used.exchange(true, std::memory_order_acquire)) return;
  set_ = &set;
  if (set.generation != generation) {
    for (CachedWalk& cached : set.walks) cached.count = 0;
    set.generation = generation;
  }
  cached_ = &set.walks[set.last];
}

WalkCache::Use::~Use() {
  if (set_ == nullptr) return;
  if (made_ != nullptr) {
    made_->count = step_ < kMaxSteps ? step_ : kMaxSteps;
    cached_ = made_;
  }
  set_->last = static_cast<uint32_t>(cached_ - set_->walks);
  set_->used.store(false, std::memory_order_release);
}

bool WalkCache::Use::IsSameBefore(uint32_t at, const CachedWalk& other) const {
  return std::memcmp(cached_->steps, other.steps, at * sizeof(Step)) == 0;
}

bool WalkCache::Use::FindInOthers(uint32_t at, uint64_t address, UnwindRule* rule) {
  if (set_ == nullptr) return false;
  for (CachedWalk& other : set_->walks) {
    if (at >= other.count || other.steps[at].address != address) continue;
    *rule = other.steps[at].rule;
    if (made_ == nullptr && !IsSameBefore(at, other)) Make(at, &other);
    if (made_ != nullptr) made_->steps[at] = other.steps[at];
    cached_ = &other;
    return true;
  }
  return false;
}

void WalkCache::Use::Note(const Step& step) {
  const uint32_t at = step_ - 1;
  if (set_ == nullptr || at >= kMaxSteps) return;
  if (made_ == nullptr) {
    if (at < cached_->count && cached_->steps[at].address == step.address) return;
    Make(at, nullptr);
  }
  made_->steps[at] = step;
}

// Replaces neither the cached walk that was followed so far nor `other`, which will be.
void WalkCache::Use::Make(uint32_t at, const CachedWalk* other) {
  do {
    set_->next = (set_->next + 1) % kWalksPerSet;
    made_ = &set_->walks[set_->next];
  } while (made_ == cached_ || made_ == other);
  made_->count = 0;
  made_->stack = 0;
  std::memcpy(made_->steps, cached_->steps, at * sizeof(Step));
}

WalkCache::CachedWalk* WalkCache::Use::Whole() const {
  if (set_ == nullptr || !is_whole_ || step_ > kMaxSteps) return nullptr;
  if (made_ != nullptr) return made_;
  return cached_->count == step_ ? cached_ : nullptr;
}

uint32_t WalkCache::Use::StackOf(uint64_t how) const {
  const CachedWalk* cached = Whole();
  return cached != nullptr && cached->how == how ? cached->stack : 0;
}

void WalkCache::Use::SetStack(uint64_t how, uint32_t stack) {
  CachedWalk* cached = Whole();
  if (cached == nullptr) return;
  cached->how = how;
  cached->stack = stack;
}

}  // namespace xpu::inject
