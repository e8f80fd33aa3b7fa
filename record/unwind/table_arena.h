// The memory in which injected libraries find unwind tables (cupti_inject/wire.h), shared by all
// processes of a recording. They can only map it for reading; the recorder writes only tables that
// it made itself.
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
  // Address space; memory is allocated as tables arrive. The tables of a PyTorch process need 100
  // MiB.
  static constexpr uint64_t kDefaultBytes = uint64_t{1} << 30;

  static Result<TableArena> Create(uint64_t bytes = kDefaultBytes);
  TableArena(TableArena&& other) noexcept;
  TableArena& operator=(TableArena&&) = delete;
  ~TableArena();

  // Handed to the library.
  int memfd() const { return memfd_.get(); }
  uint64_t bytes() const { return bytes_; }

  // Copies a table and returns its location in the format of RingHeader::tables. kSystem: the arena
  // is full.
  Result<uint32_t> Add(const UnwindTable& table);
  // The table at a location that Add returned.
  UnwindTable At(uint32_t location) const;

 private:
  TableArena() = default;

  UniqueFd memfd_;
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;
};

// The tables of a recording's files, copied into the arena once a program needs them.
class SharedTables {
 public:
  // `tables`: nullptr if no tables are made; then every file has none.
  SharedTables(TableArena arena, UnwindTables* tables)
      : arena_(std::move(arena)), tables_(tables) {}

  const TableArena& arena() const { return arena_; }
  void SetTables(UnwindTables* tables) { tables_ = tables; }

  // Returns 0 if no tables are made.
  UnwindTables::Id Request(UnwindTables::File file);
  // In the format of RingHeader::tables: pending, none, or a location.
  uint32_t LocationOf(UnwindTables::Id id);
  // Waits until nothing is pending or CLOCK_MONOTONIC has reached `deadline_ns`.
  void WaitUntil(uint64_t deadline_ns);

 private:
  TableArena arena_;
  UnwindTables* tables_;
  std::unordered_map<UnwindTables::Id, uint32_t> locations_;
};

}  // namespace xpu
