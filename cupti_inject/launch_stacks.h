// The CPU stack of every operation of the GPU, walked in the callback on the thread that it belongs
// to: wire_stacks.h says how it works. No lock, no allocation, no read that can fault.
#pragma once

#include <atomic>
#include <cstdint>

#include "cupti_inject/code_files.h"
#include "cupti_inject/handshake.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/python_stack.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/rule_cache.h"
#include "cupti_inject/stack_ids.h"
#include "cupti_inject/stack_memory.h"
#include "cupti_inject/walk_cache.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu::inject {

// The registers of the caller of the function that this is inlined into, in its call instruction.
// Our library has frame pointers, so no table of its own is needed to leave it.
__attribute__((always_inline)) inline WalkRegisters CallerRegisters() {
  const auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const auto return_address = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  return {return_address - 1, frame + 16, *reinterpret_cast<const uint64_t*>(frame)};
}

class LaunchStacks {
 public:
  // All outlive this object. `wake`: whoever calls Refresh waits for it. False: no memory.
  bool Open(const MappedRing& mapped, RingProducer* ring, Signal* wake);
  void Close();
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // Sends the stack that `at` is in. False: there is no room for it, which is counted.
  // `block`: what it is the stack of, when it is no launch.
  bool Take(wire::LaunchCall call, const WalkRegisters& at, ThreadStack& own,
            const wire::Block* block = nullptr);

  // Follows what the loader does. Never in a callback; one thread at a time.
  void Refresh() {
    if (on()) files_.Refresh();
  }
  // Nobody calls Refresh any more.
  void StopFollowing() { files_.StopFollowing(); }
  // Until the recorder has answered for every file that was reported to it, at most `timeout_ns`,
  // and only while it lives. On the refreshing thread.
  void WaitForTables(const WakeDescriptor& wake, uint64_t timeout_ns) const;
  // The same, until it has looked for an interpreter in each of them: a stack without a table can
  // be walked later, Python frames cannot.
  void WaitForPython(const WakeDescriptor& wake, uint64_t timeout_ns) const;

 private:
  static constexpr uint32_t kQuestionSlots = 1024;

  // What a stack is of.
  struct Subject {
    const wire::LaunchCall& call;
    const wire::Block* block;  // nullptr: a launch
    size_t block_bytes() const { return block == nullptr ? 0 : sizeof(*block); }
  };

  // What WalkStack asks for rules.
  class Finder {
   public:
    Finder(LaunchStacks& stacks, const CodeSnapshot& files, WalkCache::Use& cached)
        : stacks_(stacks), files_(files), cached_(cached) {}
    CodeKind Find(uint64_t address, UnwindRule* rule) {
      if (cached_.Find(address, rule)) return CodeKind::kRule;
      return FindUncached(address, rule);
    }

   private:
    CodeKind FindUncached(uint64_t address, UnwindRule* rule);

    LaunchStacks& stacks_;
    const CodeSnapshot& files_;
    WalkCache::Use& cached_;
  };

  CodeKind FindRule(const CodeSnapshot& files, uint64_t address, UnwindRule* rule);
  CodeKind KindOfOther(uint64_t address);
  bool Ask(uint64_t address);
  // `loads`: as in the message.
  bool SendCopy(const Subject& subject, const WalkRegisters& at, StackMemory& memory,
                uint32_t loads);
  [[gnu::noinline]] bool SendCopyInstead(const Subject& subject, const WalkRegisters& at,
                                         StackMemory& memory, uint32_t loads);
  bool SendStack(const Subject& subject, const WalkResult& walk, const uint64_t* frames,
                 WalkCache::Use& cached);
  bool Define(uint32_t number, const WalkResult& walk, const uint64_t* frames);

  std::atomic<bool> on_{false};
  RingProducer* ring_ = nullptr;
  Signal* wake_ = nullptr;
  const wire::RingHeader* header_ = nullptr;
  const std::byte* arena_ = nullptr;
  uint64_t arena_bytes_ = 0;
  uint64_t main_top_ = 0;
  CodeFiles files_;
  RuleCache rules_;
  WalkCache walks_;
  void* rule_memory_ = nullptr;
  StackIds ids_;
  ScratchPool scratch_;
  PythonStacks python_;
  std::atomic<uint32_t> next_single_{wire::kFirstSingleStack};
  // Pages outside all files that the recorder was asked about: page << kQuestionBits | question.
  std::atomic<uint64_t> asked_[kQuestionSlots] = {};
  std::atomic<uint32_t> questions_{0};
};

}  // namespace xpu::inject
