// Stacks that a program sent as they were, because the unwind table of some of their code was not
// made yet, or because the loader had just loaded code: they wait here, and are walked like any
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cupti_inject/wire_stacks.h"
#include "record/gpu/code_ranges.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {

struct StackCopy {
  wire::LaunchCall call{};
  WalkRegisters registers;
  uint32_t loads = 0;                                 // as in its message
  uint64_t taken_ns = 0;                              // when it came here
  std::vector<std::byte> bytes;                       // at registers.sp
  std::shared_ptr<const CodeRanges::Version> code{};  // nullptr: not reported yet
  bool code_unknown = false;                          // nor ever will be
  uint64_t cost = 0;                                  // of memory
};

class StackCopies {
 public:
  // A table that takes longer is not waited for, nor when more than this is kept.
  static constexpr uint64_t kPatienceNs = 5'000'000'000;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  using FindRule =
      std::function<CodeKind(const CodeRanges::Version& code, uint64_t address, UnwindRule* rule)>;
  using Done = std::function<void(const wire::LaunchCall& call, const WalkResult& walk,
                                  std::span<const uint64_t> frames)>;

  void Add(StackCopy copy);
  bool empty() const { return copies_.empty(); }
  uint64_t bytes() const { return bytes_; }  // that they take
  // What was loaded after `loads` loads is in `code`.
  void Told(uint32_t loads, const std::shared_ptr<const CodeRanges::Version>& code);
  // Walks those that need not wait. `last`: none does.
  void Walk(const FindRule& find, uint64_t now_ns, bool last, const Done& done);

 private:
  // Of what `copy` keeps; the lists of code are a program's to make.
  void Charge(StackCopy& copy);

  std::deque<StackCopy> copies_;
  std::weak_ptr<const CodeRanges::Version> charged_code_;  // the last one
  uint64_t bytes_ = 0;
};

}  // namespace xpu
