#include "format/field_columns.h"

#include <algorithm>
#include <cstring>

namespace xpu {
namespace {

template <typename T>
T Load(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

template <typename T>
void Store(std::byte* place, T value) {
  std::memcpy(place, &value, sizeof(value));
}

// Calls `use` with a value of the type that a field of this kind has. Signed numbers are
// sign-extended by its conversion to 64 bits.
template <typename Use>
auto WithType(NumberKind kind, Use&& use) {
  switch (kind) {
    case NumberKind::kU8:
      return use(uint8_t{});
    case NumberKind::kU16:
      return use(uint16_t{});
    case NumberKind::kU32:
      return use(uint32_t{});
    case NumberKind::kI32:
      return use(int32_t{});
    case NumberKind::kI64:
      return use(int64_t{});
    case NumberKind::kBool:
      return use(bool{});
    case NumberKind::kInstance:
      return use(InstanceId{});
    case NumberKind::kU64:
      break;
  }
  return use(uint64_t{});
}

template <typename T>
uint64_t ToNumber(T value, InstancePlaces& instances) {
  if constexpr (std::is_same_v<T, InstanceId>) {
    return instances.PlaceOf(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

// False: an instance that the block does not list.
template <typename T>
bool FromNumber(uint64_t number, const std::vector<InstanceId>& instances, std::byte* place) {
  if constexpr (std::is_same_v<T, InstanceId>) {
    if (number > instances.size()) return false;
    Store(place, number == 0 ? InstanceId{} : instances[number - 1]);
  } else if constexpr (std::is_same_v<T, bool>) {
    Store(place, number != 0);
  } else {
    Store(place, static_cast<T>(number));
  }
  return true;
}

}  // namespace

uint64_t InstancePlaces::PlaceOf(InstanceId instance) {
  if (!instance) return 0;
  if (instance == last_) return last_place_;
  const auto [entry, is_new] = places_.try_emplace(instance, instances_.size() + 1);
  if (is_new) instances_.push_back(instance);
  last_ = instance;
  last_place_ = entry->second;
  return last_place_;
}

std::vector<GatheredColumn> GatherColumns(std::span<const FieldPlace> fields,
                                          const std::byte* first_row, size_t rows, size_t row_bytes,
                                          InstancePlaces& instances) {
  std::vector<GatheredColumn> columns(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    columns[i].first = WithType(fields[i].kind, [&]<typename T>(T) {
      return ToNumber(Load<T>(first_row + fields[i].offset), instances);
    });
  }
  for (size_t begin = 0; begin < rows; begin += kTileRows) {
    const size_t count = std::min(kTileRows, rows - begin);
    for (size_t i = 0; i < fields.size(); ++i) {
      GatheredColumn& column = columns[i];
      const std::byte* const place = first_row + begin * row_bytes + fields[i].offset;
      WithType(fields[i].kind, [&]<typename T>(T) {
        const auto number = [&](size_t row) {
          return ToNumber(Load<T>(place + row * row_bytes), instances);
        };
        if (column.values.empty()) {
          uint64_t differing = 0;
          for (size_t row = 0; row < count; ++row) differing |= number(row) ^ column.first;
          if (differing == 0) return;
          column.values.assign(rows, column.first);
        }
        uint64_t* const values = column.values.data() + begin;
        for (size_t row = 0; row < count; ++row) values[row] = number(row);
      });
    }
  }
  return columns;
}

bool ColumnScatter::SetCommon(std::byte* row) const {
  bool is_whole = true;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!columns_[i].values.empty()) continue;
    is_whole &= WithType(fields_[i].kind, [&]<typename T>(T) {
      return FromNumber<T>(columns_[i].all, instances_, row + fields_[i].offset);
    });
  }
  return is_whole;
}

bool ColumnScatter::SetOthers(std::byte* first_row, size_t begin, size_t count,
                              size_t row_bytes) const {
  bool is_whole = true;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (columns_[i].values.empty()) continue;
    const uint64_t* const values = columns_[i].values.data() + begin;
    std::byte* const place = first_row + fields_[i].offset;
    is_whole &= WithType(fields_[i].kind, [&]<typename T>(T) {
      bool are_known = true;
      for (size_t row = 0; row < count; ++row) {
        are_known &= FromNumber<T>(values[row], instances_, place + row * row_bytes);
      }
      return are_known;
    });
  }
  return is_whole;
}

}  // namespace xpu
