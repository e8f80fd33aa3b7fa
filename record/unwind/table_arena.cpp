#include "record/unwind/table_arena.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_inject/wire.h"
#include "format/base/check.h"
#include "format/base/file.h"

namespace xpu {
namespace {

#ifndef F_SEAL_FUTURE_WRITE
constexpr int F_SEAL_FUTURE_WRITE = 0x0010;  // Linux 5.1
#endif

// The offsets that mean "no table" (wire.h) are not used.
constexpr uint64_t kFirstTable = 64;

}  // namespace

Result<TableArena> TableArena::Create(uint64_t bytes) {
  TableArena arena;
  arena.memfd_.reset(::memfd_create("xpu-tables", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!arena.memfd_) return SystemError("memfd_create", errno);
  const int memfd = arena.memfd_.get();
  if (::ftruncate(memfd, static_cast<off_t>(bytes)) != 0) {
    return SystemError("memfd: ftruncate", errno);
  }
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0);
  if (memory == MAP_FAILED) return SystemError("memfd: mmap", errno);
  arena.memory_ = static_cast<std::byte*>(memory);
  arena.bytes_ = bytes;
  arena.used_ = kFirstTable;
  // The recorder's own mapping remains writable; later ones are not.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(memfd, F_ADD_SEALS, kSeals) != 0) return SystemError("memfd: seal", errno);
  return arena;
}

TableArena::TableArena(TableArena&& other) noexcept
    : memfd_(std::move(other.memfd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      used_(other.used_) {}

TableArena::~TableArena() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

Result<uint32_t> TableArena::Add(const UnwindTable& table) {
  const uint64_t bytes = table.header->bytes;
  if (bytes > bytes_ - used_) {
    return Error{ErrorKind::kSystem, "the memory for unwind tables is full", {}};
  }
  std::memcpy(memory_ + used_, table.header, bytes);
  const auto location = static_cast<uint32_t>(used_ / wire::kTableUnit);
  used_ = (used_ + bytes + wire::kTableUnit - 1) / wire::kTableUnit * wire::kTableUnit;
  return location;
}

UnwindTable TableArena::At(uint32_t location) const {
  UnwindTable table;
  const uint64_t offset = uint64_t{location} * wire::kTableUnit;
  XPU_CHECK(offset < used_ && table.Open(memory_ + offset, used_ - offset));
  return table;
}

UnwindTables::Id SharedTables::Request(UnwindTables::File file) {
  return tables_ == nullptr ? 0 : tables_->Request(std::move(file));
}

uint32_t SharedTables::LocationOf(UnwindTables::Id id) {
  if (id == 0) return wire::kTableNone;
  if (const auto found = locations_.find(id); found != locations_.end()) return found->second;
  const UnwindTables::State state = tables_->state(id);
  if (state == UnwindTables::State::kPending) return wire::kTablePending;
  uint32_t location = wire::kTableNone;
  if (state == UnwindTables::State::kReady) {
    auto added = arena_.Add(tables_->table(id));
    if (added.ok()) {
      location = *added;
    } else {
      tables_->Refuse(id, added.error().message);
    }
    locations_[id] = location;
  }
  return location;
}

void SharedTables::WaitUntil(uint64_t deadline_ns) {
  if (tables_ != nullptr) tables_->WaitUntil(deadline_ns);
}

}  // namespace xpu
