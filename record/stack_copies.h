// Stacks that a program sent as they were, because the unwind table of some of their code was not
// made yet: they wait here for it, and are walked like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "cupti_inject/wire.h"
#include "symbolize/elf/unwind_walk.h"

namespace xpu {

struct StackCopy {
  wire::LaunchCall call{};
  WalkRegisters registers;
  uint64_t taken_ns = 0;         // when it came here
  std::vector<std::byte> bytes;  // at registers.sp
};

class StackCopies {
 public:
  // A table that takes longer is not waited for, nor when more than this is kept.
  static constexpr uint64_t kPatienceNs = 5'000'000'000;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  // What WalkStack asks for rules.
  struct Code {
    std::function<CodeKind(uint64_t address, UnwindRule* rule)> find;
    CodeKind Find(uint64_t address, UnwindRule* rule) { return find(address, rule); }
  };
  using Done = std::function<void(const wire::LaunchCall& call, const WalkResult& walk,
                                  std::span<const uint64_t> frames)>;

  void Add(StackCopy copy);
  bool empty() const { return copies_.empty(); }
  // Walks those that need not wait. `last`: none does.
  void Walk(Code code, uint64_t now_ns, bool last, const Done& done);

 private:
  std::deque<StackCopy> copies_;
  uint64_t bytes_ = 0;
};

}  // namespace xpu
