#include "record/off_cpu/remote_stacks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <linux/futex.h>

#include "bpf/events.h"
#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_memory.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// Reads the stack of a thread in pieces.
class RemoteMemory {
 public:
  explicit RemoteMemory(uint32_t pid) : memory_(static_cast<pid_t>(pid)) {}

  bool Read(uint64_t address, uint64_t* value) {
    const bool is_there =
        address - start_ <= bytes_ && bytes_ - (address - start_) >= sizeof(*value);
    if (!is_there && !Fill(address)) return false;
    std::memcpy(value, piece_.data() + (address - start_), sizeof(*value));
    return true;
  }

 private:
  bool Fill(uint64_t address) {
    start_ = address;
    bytes_ = memory_.ReadSome(address, piece_.data(), piece_.size());
    return bytes_ >= sizeof(uint64_t);
  }

  ProcessMemory memory_;
  std::array<std::byte, 1024> piece_;
  uint64_t start_ = 0;
  uint64_t bytes_ = 0;
};

// The beginning of pthread_mutex_t in the GNU C library.
struct Mutex {
  uint32_t lock;
  uint32_t count;
  uint32_t owner;
};

bool IsHeld(const Mutex& mutex) {
  constexpr uint32_t kThreadsMayWait = 2;
  // Robust mutexes and those that inherit priorities hold the number of their owner.
  return mutex.owner != 0 &&
         (mutex.lock == kThreadsMayWait || (mutex.lock & FUTEX_TID_MASK) == mutex.owner);
}

// pthread_rwlock_t in the GNU C library (2.25 and newer). Threads wait for one of its words.
struct RwLock {
  uint32_t readers;
  uint32_t writers;
  uint32_t write_phase_futex;
  uint32_t writers_futex;
  uint32_t padding[2];
  uint32_t writer;
  uint32_t is_shared;
};

// Held for writing. Who holds it for reading is written nowhere.
bool IsHeld(const RwLock& lock) {
  constexpr uint32_t kWritePhase = 1;
  constexpr uint32_t kWriteLocked = 2;
  constexpr uint32_t kFutexBits = 3;  // its value, and that a thread may wait
  const bool is_locked =
      (lock.readers & (kWritePhase | kWriteLocked)) == (kWritePhase | kWriteLocked) &&
      (lock.write_phase_futex & 1) != 0;
  return is_locked && lock.write_phase_futex <= kFutexBits && lock.writers_futex <= kFutexBits &&
         lock.padding[0] == 0 && lock.padding[1] == 0 && lock.is_shared <= 1;
}

// The number of the thread that holds the lock at a futex, as its process numbers it; 0: it does
// not look like a lock that is held.
uint32_t OwnerAt(ProcessMemory& memory, uint64_t futex) {
  Mutex mutex{};
  if (memory.Read(futex, &mutex, sizeof(mutex)) && IsHeld(mutex)) return mutex.owner;
  for (const uint64_t offset :
       {offsetof(RwLock, write_phase_futex), offsetof(RwLock, writers_futex)}) {
    RwLock lock{};
    const bool is_read = futex > offset && memory.Read(futex - offset, &lock, sizeof(lock));
    if (is_read && IsHeld(lock)) return lock.writer;
  }
  return 0;
}

// The number of a thread of the process in its innermost pid namespace; 0: not known.
uint32_t OwnNumber(uint32_t pid, uint32_t tid) {
  auto status = ReadFile(Format("/proc/{}/task/{}/status", pid, tid));
  if (!status.ok()) return 0;
  const std::vector<std::string_view> numbers = StatusWords(*status, "NSpid");
  return numbers.empty() ? 0
                         : static_cast<uint32_t>(
                               std::strtoul(std::string(numbers.back()).c_str(), nullptr, 10));
}

}  // namespace

// The interface through which WalkStack looks up unwind rules.
class RemoteStacks::Code {
 public:
  Code(RemoteStacks& stacks, uint32_t pid) : stacks_(stacks), pid_(pid) {}

  CodeKind Find(uint64_t address, UnwindRule* rule) {
    const auto* const found = stacks_.processes_.FindCode(pid_, address);
    if (found == nullptr) return CodeKind::kNotCode;
    UnwindTables* tables = stacks_.tables_;
    if (tables == nullptr) return CodeKind::kNoTable;
    const auto& [start, mapping] = *found;
    MappedFile file = stacks_.processes_.MappedFileOf(pid_, start, mapping);
    if (file.paths.empty()) return CodeKind::kNoTable;
    const UnwindTables::Id id = tables->Request(std::move(file));
    if (id == 0) return CodeKind::kNoTable;
    if (tables->state(id) == UnwindTables::State::kPending) {
      constexpr uint64_t kPatienceNs = 1'000'000'000;
      tables->WaitUntil(MonotonicNs() + kPatienceNs);
    }
    if (tables->state(id) == UnwindTables::State::kPending) return CodeKind::kNotReady;
    if (tables->state(id) == UnwindTables::State::kFailed) return CodeKind::kNoTable;
    const auto link_address =
        tables->LinkAddressOfMapping(id, mapping.file_offset, mapping.end - start);
    if (!link_address) return CodeKind::kNoTable;
    *rule = tables->table(id).Find(address - start + *link_address);
    return CodeKind::kRule;
  }

 private:
  RemoteStacks& stacks_;
  uint32_t pid_;
};

RemoteStacks::Stack RemoteStacks::Take(uint32_t pid, const WalkRegisters& registers) {
  Stack stack;
  if (registers.ip == 0) {
    stack.walk.stop = XPU_STOP_NO_STACK;
    return stack;
  }
  RemoteMemory memory(pid);
  uint64_t word = 0;
  if (!memory.Read(registers.sp, &word)) {
    stack.walk.stop = XPU_STOP_UNREADABLE;
    return stack;
  }
  Code code(*this, pid);
  std::array<uint64_t, XPU_MAX_USER_FRAMES> frames;
  const WalkResult walk =
      WalkStack(registers, memory, code, frames.data(), static_cast<uint32_t>(frames.size()));
  stack.walk = {walk.flags, static_cast<uint32_t>(walk.stop)};
  for (uint32_t i = 0; i < walk.count; ++i) stack.frames.push_back({FrameKind::kUser, frames[i]});
  return stack;
}

uint32_t RemoteStacks::HolderOf(uint32_t pid, uint64_t futex, bool has_own_numbers) const {
  const ProcessTable::Process* process = processes_.Find(pid);
  if (process == nullptr) return 0;
  ProcessMemory memory(static_cast<pid_t>(pid));
  const uint32_t number = OwnerAt(memory, futex);
  if (number == 0) return 0;
  const auto& threads = process->threads;
  const auto owner = std::find_if(threads.begin(), threads.end(), [&](const auto& thread) {
    return number == (has_own_numbers ? OwnNumber(pid, thread.tid) : thread.tid);
  });
  return owner == threads.end() ? 0 : owner->tid;
}

}  // namespace xpu
