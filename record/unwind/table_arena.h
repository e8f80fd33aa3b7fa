// The memory in which injected libraries find unwind tables (cupti_inject/wire.h): one for all
// processes of a recording. They map it and can only read it; we only write what we have made
// ourselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/unwind/unwind_tables.h"
#include "symbolize/unwind/unwind_table.h"

namespace xpu {

class TableArena {
 public:
  // Address space; memory is taken as tables come. The tables of a PyTorch process need 100 MiB.
  static constexpr uint64_t kDefaultBytes = uint64_t{1} << 30;

  static Result<TableArena> Create(uint64_t bytes = kDefaultBytes);
  TableArena(TableArena&& other) noexcept;
  TableArena& operator=(TableArena&&) = delete;
  ~TableArena();

  // What the library is given.
  int memfd() const { return memfd_.get(); }
  uint64_t bytes() const { return bytes_; }

  // Copies a table; returns its location as RingHeader::tables says it. kSystem: no room.
  Result<uint32_t> Add(const UnwindTable& table);
  // Of a location that Add returned.
  UnwindTable At(uint32_t location) const;

 private:
  TableArena() = default;

  UniqueFd memfd_;
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;
};

// The tables of a recording's files, in the arena once a program has asked for them.
class SharedTables {
 public:
  // `tables`: nullptr: there are none, every file is without one.
  SharedTables(TableArena arena, UnwindTables* tables)
      : arena_(std::move(arena)), tables_(tables) {}

  const TableArena& arena() const { return arena_; }
  void SetTables(UnwindTables* tables) { tables_ = tables; }

  // 0: there are no tables at all.
  UnwindTables::Id Request(UnwindTables::File file);
  // As RingHeader::tables says it: pending, none, or where it is.
  uint32_t LocationOf(UnwindTables::Id id);
  // Waits until nothing is pending or CLOCK_MONOTONIC has reached `deadline_ns`.
  void WaitUntil(uint64_t deadline_ns);

 private:
  TableArena arena_;
  UnwindTables* tables_;
  std::unordered_map<UnwindTables::Id, uint32_t> locations_;
};

}  // namespace xpu
