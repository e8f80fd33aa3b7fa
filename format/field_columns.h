// The events of a list as columns of numbers, and back.
//
// Most fields of most events have one value in a whole block: of a kernel's 50 some ten vary. To
// write out all of them as 64-bit numbers, column after column, was a fifth of what the recorder
// did for a launch, and a third of the time of reading a block. So rows are gone through once, in
// tiles that stay in the cache, and only a field in which a second value occurs gets a column of
// its own; on the way back, what all rows have is put into one row, which is copied.
//
// A field is a place and a kind of number, so that one loop serves the events of every kind: a loop
// for each of the fields was 220 kB of code more, no faster, and took twenty seconds to compile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/events.h"

namespace xpu {

inline constexpr size_t kTileRows = 32;

enum class NumberKind : uint8_t { kU8, kU16, kU32, kU64, kI32, kI64, kBool, kInstance };

struct FieldPlace {
  uint32_t offset = 0;  // in the event, in bytes
  NumberKind kind = NumberKind::kU64;
};

template <typename T>
consteval NumberKind NumberKindOf() {
  if constexpr (std::is_same_v<T, InstanceId>) {
    return NumberKind::kInstance;
  } else if constexpr (std::is_enum_v<T>) {
    return NumberKindOf<std::underlying_type_t<T>>();
  } else if constexpr (requires { typename T::Value; }) {
    return NumberKindOf<typename T::Value>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return NumberKind::kBool;
  } else if constexpr (std::is_signed_v<T>) {
    static_assert(std::is_integral_v<T> && sizeof(T) >= 4);
    return sizeof(T) == 4 ? NumberKind::kI32 : NumberKind::kI64;
  } else {
    static_assert(std::is_integral_v<T>);
    return sizeof(T) == 1   ? NumberKind::kU8
           : sizeof(T) == 2 ? NumberKind::kU16
           : sizeof(T) == 4 ? NumberKind::kU32
                            : NumberKind::kU64;
  }
}

// In the order of VisitFields.
template <typename Event>
std::array<FieldPlace, FieldCount<Event>()> FieldPlaces() {
  static_assert(std::is_trivially_copyable_v<Event>);
  std::array<FieldPlace, FieldCount<Event>()> places;
  const Event event;
  size_t next = 0;
  VisitFields(event, [&]<typename T>(const char*, const T& field) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&event);
    const auto offset = reinterpret_cast<const std::byte*>(&field) - begin;
    places[next++] = {static_cast<uint32_t>(offset), NumberKindOf<T>()};
  });
  return places;
}

// The instances of a block: random 64-bit numbers, few of them, so columns hold their places.
class InstancePlaces {
 public:
  uint64_t PlaceOf(InstanceId instance);
  const std::vector<InstanceId>& instances() const { return instances_; }

 private:
  std::vector<InstanceId> instances_;
  std::unordered_map<InstanceId, uint64_t> places_;
  InstanceId last_;
  uint64_t last_place_ = 0;
};

struct GatheredColumn {
  uint64_t first = 0;
  std::vector<uint64_t> values{};  // empty: all are `first`
};

// One column for each field of `rows` events of `row_bytes` bytes each, at least one.
std::vector<GatheredColumn> GatherColumns(std::span<const FieldPlace> fields,
                                          const std::byte* first_row, size_t rows, size_t row_bytes,
                                          InstancePlaces& instances);

struct ColumnToScatter {
  uint64_t all = 0;
  std::span<const uint64_t> values{};  // empty: all are `all`
};

// The rows of these columns, one for each field: first what all rows have, in one; then, in copies
// of it, what differs.
class ColumnScatter {
 public:
  ColumnScatter(std::span<const FieldPlace> fields, std::span<const ColumnToScatter> columns,
                const std::vector<InstanceId>& instances)
      : fields_(fields), columns_(columns), instances_(instances) {}

  // Both return false if a column refers to an instance that the block does not list.
  bool SetCommon(std::byte* row) const;
  // Sets `count` rows, from number `begin` on, which lie at `first_row`.
  bool SetOthers(std::byte* first_row, size_t begin, size_t count, size_t row_bytes) const;

 private:
  std::span<const FieldPlace> fields_;
  std::span<const ColumnToScatter> columns_;
  const std::vector<InstanceId>& instances_;
};

// Fills `list` with the rows. False where ColumnScatter returns it.
template <typename Event>
bool ScatterColumns(const ColumnScatter& scatter, size_t rows, std::vector<Event>& list) {
  Event row;
  bool is_whole = scatter.SetCommon(reinterpret_cast<std::byte*>(&row));
  list.clear();
  list.reserve(rows);
  for (size_t begin = 0; begin < rows; begin += kTileRows) {
    const size_t count = std::min(kTileRows, rows - begin);
    list.insert(list.end(), count, row);
    auto* const first = reinterpret_cast<std::byte*>(&list[begin]);
    is_whole &= scatter.SetOthers(first, begin, count, sizeof(Event));
  }
  return is_whole;
}

}  // namespace xpu
