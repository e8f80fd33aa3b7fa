#include "record/gpu/stack_copies.h"

#include <cstring>
#include <utility>

namespace xpu {
namespace {

struct CopiedMemory {
  const StackCopy& copy;

  bool Read(uint64_t address, uint64_t* value) const {
    const uint64_t at = address - copy.registers.sp;
    if (copy.bytes.size() < sizeof(*value) || at > copy.bytes.size() - sizeof(*value)) return false;
    std::memcpy(value, copy.bytes.data() + at, sizeof(*value));
    return true;
  }
};

// The interface through which WalkStack looks up unwind rules.
struct CopiedCode {
  const StackCopies::FindRule& find;
  const CodeRanges::Version* ranges;

  CodeKind Find(uint64_t address, UnwindRule* rule) const {
    return ranges == nullptr ? CodeKind::kNotReady : find(*ranges, address, rule);
  }
};

}  // namespace

void StackCopies::Charge(StackCopy& copy) {
  bytes_ -= copy.cost;
  copy.cost = sizeof(copy) + copy.bytes.size();
  if (copy.code != nullptr && copy.code != charged_code_.lock()) {
    if (bytes_ + copy.cost + copy.code->Cost() <= kMaxBytes) {
      copy.cost += copy.code->Cost();
      charged_code_ = copy.code;
    } else {
      copy.code.reset();
      copy.code_unknown = true;
    }
  }
  bytes_ += copy.cost;
}

void StackCopies::Add(StackCopy copy) {
  Charge(copy);
  copies_.push_back(std::move(copy));
}

void StackCopies::SetCode(uint32_t loads, const std::shared_ptr<const CodeRanges::Version>& code) {
  for (StackCopy& copy : copies_) {
    if (copy.code != nullptr || copy.code_unknown || copy.loads > loads) continue;
    // A later list does not show what was mapped at the same address earlier.
    copy.code_unknown = copy.loads < loads;
    if (copy.code_unknown) continue;
    copy.code = code;
    Charge(copy);
  }
}

void StackCopies::Walk(const FindRule& find, uint64_t now_ns, bool last, const Done& done) {
  std::deque<StackCopy> waiting;
  for (StackCopy& copy : copies_) {
    CopiedMemory memory{copy};
    CopiedCode code{find, copy.code.get()};
    uint64_t frames[wire::kMaxFrames];
    const WalkResult walk = WalkStack(copy.registers, memory, code, frames, wire::kMaxFrames);
    const bool wait = (walk.flags & kWalkNotReady) != 0 && !copy.code_unknown && !last &&
                      bytes_ <= kMaxBytes && now_ns - copy.taken_ns < kPatienceNs;
    if (wait) {
      waiting.push_back(std::move(copy));
      continue;
    }
    bytes_ -= copy.cost;
    done(copy, walk, std::span(frames, walk.count));
  }
  copies_ = std::move(waiting);
}

}  // namespace xpu
