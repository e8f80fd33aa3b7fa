// Raw copies of stacks, which a program sends when the unwind table of some code is not ready or
// the loader has just loaded code. They wait here until they can be walked like any other stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cupti_inject/wire_stacks.h"
#include "record/gpu/code_ranges.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {

struct StackCopy {
  wire::LaunchCall call{};
  std::optional<wire::Block> block{};  // if it is not a launch's
  WalkRegisters registers;
  uint32_t loads = 0;                                 // as in the message
  uint64_t taken_ns = 0;                              // when the copy arrived
  std::vector<std::byte> bytes;                       // memory from registers.sp on
  std::shared_ptr<const CodeRanges::Version> code{};  // nullptr: not reported yet
  bool code_unknown = false;                          // and never will be known
  uint64_t cost = 0;                                  // estimated memory
};

class StackCopies {
 public:
  // Copies wait for a table no longer than this, and not at all when more bytes than this are kept.
  static constexpr uint64_t kPatienceNs = 5'000'000'000;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  using FindRule =
      std::function<CodeKind(const CodeRanges::Version& code, uint64_t address, UnwindRule* rule)>;
  using Done = std::function<void(const StackCopy& copy, const WalkResult& walk,
                                  std::span<const uint64_t> frames)>;

  void Add(StackCopy copy);
  bool empty() const { return copies_.empty(); }
  uint64_t bytes() const { return bytes_; }  // memory of all copies
  // Sets the code that was mapped after `loads` loads of libraries.
  void SetCode(uint32_t loads, const std::shared_ptr<const CodeRanges::Version>& code);
  // Walks the copies that need not wait; all of them if `last`.
  void Walk(const FindRule& find, uint64_t now_ns, bool last, const Done& done);

 private:
  // Charges `copy` for what it keeps alive. A program decides how many lists of code there are.
  void Charge(StackCopy& copy);

  std::deque<StackCopy> copies_;
  std::weak_ptr<const CodeRanges::Version> charged_code_;  // the most recent one
  uint64_t bytes_ = 0;
};

}  // namespace xpu
