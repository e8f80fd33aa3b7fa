#include "cupti_inject/launch_stacks.h"

#include <optional>

#include <sys/auxv.h>
#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

constexpr uint32_t kQuestionBits = 19;
constexpr uint32_t kMaxQuestions = (1u << kQuestionBits) - 1;

}  // namespace

bool LaunchStacks::Open(const MappedRing& mapped, RingProducer* ring, Signal* wake) {
  ring_ = ring;
  wake_ = wake;
  header_ = mapped.header;
  arena_ = mapped.arena;
  arena_bytes_ = mapped.arena_bytes;
  // The name of the program lies above everything else on the main thread's stack.
  main_top_ = getauxval(AT_EXECFN) / 8 * 8;
  rule_memory_ = MapZeroed(RuleCache::kBytes);
  rules_.Attach(static_cast<RuleCache::Entry*>(rule_memory_));
  if (rule_memory_ == nullptr || !walks_.Open() || !ids_.Open() || !scratch_.Open() ||
      !files_.Open(ring) || !python_.Open(header_, ring, &scratch_)) {
    Close();
    return false;
  }
  on_.store(true, std::memory_order_release);
  return true;
}

void LaunchStacks::Close() {
  on_.store(false, std::memory_order_relaxed);
  files_.Close();
  python_.Close();
  scratch_.Close();
  ids_.Close();
  walks_.Close();
  if (rule_memory_ != nullptr) munmap(rule_memory_, RuleCache::kBytes);
  rule_memory_ = nullptr;
}

void LaunchStacks::WaitForTables(const WakeDescriptor& wake, uint64_t timeout_ns) const {
  if (!on()) return;
  uint32_t file = 0;  // those before it are answered
  wake.WaitUntil(timeout_ns, [&] {
    while (file < files_.number_count() &&
           header_->tables[file].load(std::memory_order_relaxed) != wire::kTablePending) {
      ++file;
    }
    return file == files_.number_count();
  });
}

void LaunchStacks::WaitForPython(const WakeDescriptor& wake, uint64_t timeout_ns) const {
  if (!on()) return;
  wake.WaitUntil(timeout_ns, [&] {
    return header_->code_files_seen.load(std::memory_order_acquire) >= files_.number_count();
  });
}

// Flattened: the walk is a chain of small functions, a third faster in one piece.
__attribute__((flatten)) bool LaunchStacks::Take(wire::LaunchCall call, const WalkRegisters& at,
                                                 ThreadStack& own, const wire::Block* block) {
  call.python_stack = python_.Take(call.tid, call.time_ns, own);
  const Subject subject{call, block};
  const uint32_t loads = files_.LoadsSince();
  const bool covered = own.Covers(at.sp, main_top_);
  StackMemory memory(covered ? at.sp : 0, covered ? own.top : 0, scratch_);
  uint64_t frames[wire::kMaxFrames];
  if (loads != 0 && !files_.WaitForLoads(loads, *wake_)) [[unlikely]] {
    return SendCopyInstead(subject, at, memory, loads);
  }
  // Left before anything is sent: the writes to the ring take a while, a counter would wait for
  // them.
  std::optional<CodeFiles::Reading> files(std::in_place, files_, call.tid);
  WalkCache::Use cached(walks_, at.sp, (**files).generation);
  Finder code(*this, **files, cached);
  const WalkResult walk = WalkStack(at, memory, code, frames, wire::kMaxFrames);
  files.reset();
  if ((walk.flags & kWalkNotReady) != 0 && SendCopy(subject, at, memory, 0)) return true;
  return SendStack(subject, walk, frames, cached);
}

CodeKind LaunchStacks::Finder::FindUncached(uint64_t address, UnwindRule* rule) {
  const CodeKind kind = stacks_.rules_.Find(address, files_.generation, rule)
                            ? CodeKind::kRule
                            : stacks_.FindRule(files_, address, rule);
  if (kind == CodeKind::kRule) {
    cached_.Add(address, *rule);
  } else {
    cached_.AddOther();
  }
  return kind;
}

CodeKind LaunchStacks::FindRule(const CodeSnapshot& files, uint64_t address, UnwindRule* rule) {
  const CodeRange* range = files.Find(address);
  if (range == nullptr) return KindOfOther(address);
  if (range->file >= wire::kMaxCodeFiles) return CodeKind::kNoTable;
  const uint32_t place = header_->tables[range->file].load(std::memory_order_acquire);
  if (place == wire::kTablePending) return CodeKind::kNotReady;
  const uint64_t offset = uint64_t{place} * wire::kTableUnit;
  UnwindTable table;
  if (place == wire::kTableNone || offset >= arena_bytes_ ||
      !table.Open(arena_ + offset, arena_bytes_ - offset)) {
    return CodeKind::kNoTable;
  }
  *rule = table.Find(address - range->bias);
  rules_.Add(address, files.generation, *rule);
  return CodeKind::kRule;
}

// Generated code, a file that the flusher has not seen yet, or none at all.
CodeKind LaunchStacks::KindOfOther(uint64_t address) {
  uint32_t count = header_->other_code_count.load(std::memory_order_acquire);
  if (count > wire::kMaxOtherCode) count = wire::kMaxOtherCode;
  for (uint32_t i = 0; i < count; ++i) {
    const wire::AddressRange& range = header_->other_code[i];
    if (address >= range.start.load(std::memory_order_relaxed) &&
        address < range.end.load(std::memory_order_relaxed)) {
      return CodeKind::kNoTable;
    }
  }
  return Ask(address) ? CodeKind::kNotReady : CodeKind::kNotCode;
}

// True: the answer is not there yet.
bool LaunchStacks::Ask(uint64_t address) {
  if (address >> 47 != 0 || address < wire::kPageBytes) return false;  // never code of a program
  const uint64_t page = address / wire::kPageBytes;
  std::atomic<uint64_t>& asked = asked_[page * 0x9e3779b97f4a7c15 >> 54];
  static_assert(kQuestionSlots == 1u << (64 - 54));
  const uint64_t entry = asked.load(std::memory_order_relaxed);
  if (entry != 0 && entry >> kQuestionBits == page) {
    const uint32_t question = entry & kMaxQuestions;
    return header_->other_code_answers.load(std::memory_order_acquire) < question;
  }
  const uint32_t question = questions_.fetch_add(1, std::memory_order_relaxed) + 1;
  wire::OtherCodeMessage message{};
  message.address = address;
  if (question > kMaxQuestions || !ring_->Send(wire::MessageKind::kOtherCode, message)) {
    questions_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  asked.store(page << kQuestionBits | question, std::memory_order_relaxed);
  wake_->Notify();  // it may be a new file
  return true;
}

bool LaunchStacks::SendCopy(const Subject& subject, const WalkRegisters& at, StackMemory& memory,
                            uint32_t loads) {
  // The records of the GPU are worth more than a better stack.
  if (ring_->IsHalfFull()) return false;
  size_t bytes = 0;
  const std::byte* piece = memory.Piece(at.sp, wire::kMaxCopyBytes, &bytes);
  if (piece == nullptr) return false;
  wire::StackCopyMessage message{};
  message.call = subject.call;
  message.ip = at.ip;
  message.sp = at.sp;
  message.bp = at.bp;
  message.bytes = static_cast<uint32_t>(bytes);
  message.loads = loads;
  return ring_->Send(wire::MessageKind::kStackCopy, message, piece, bytes, subject.block,
                     subject.block_bytes());
}

bool LaunchStacks::SendCopyInstead(const Subject& subject, const WalkRegisters& at,
                                   StackMemory& memory, uint32_t loads) {
  if (SendCopy(subject, at, memory, loads)) return true;
  ring_->Count(wire::kCounterWalksDropped);
  return false;
}

bool LaunchStacks::SendStack(const Subject& subject, const WalkResult& walk, const uint64_t* frames,
                             WalkCache::Use& cached) {
  const uint64_t how = static_cast<uint64_t>(walk.stop) << 8 | walk.flags;
  wire::LaunchMessage message{};
  message.call = subject.call;
  message.stack = cached.StackOf(how);
  if (message.stack == 0) {
    StackIds::Entry* entry = ids_.Find(StackIds::HashOf(frames, walk.count, how));
    message.stack = entry == nullptr ? next_single_.fetch_add(1, std::memory_order_relaxed)
                                     : ids_.NumberOf(entry);
    bool known = entry != nullptr && entry->sent.load(std::memory_order_acquire);
    if (!known) known = Define(message.stack, walk, frames);
    if (!known) message.stack = 0;
    if (known && entry != nullptr) {
      entry->sent.store(true, std::memory_order_release);
      cached.SetStack(how, message.stack);
    }
  }
  if (message.stack != 0 &&
      ring_->Send(wire::MessageKind::kLaunch, message, subject.block, subject.block_bytes())) {
    return true;
  }
  ring_->Count(wire::kCounterWalksDropped);
  return false;
}

bool LaunchStacks::Define(uint32_t number, const WalkResult& walk, const uint64_t* frames) {
  wire::StackMessage message{};
  message.stack = number;
  message.frame_count = walk.count;
  message.stop = static_cast<uint32_t>(walk.stop);
  message.flags = walk.flags;
  return ring_->Send(wire::MessageKind::kStack, message, frames, walk.count * sizeof(uint64_t));
}

}  // namespace xpu::inject
