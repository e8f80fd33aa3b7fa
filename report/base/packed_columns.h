// Columns of numbers in few bytes, of which each number can be read alone.
//
// The rows of a list are in about the order of time, so that numbers of one column that are near
// each other have near values: of each group of rows a column keeps the least number, and of each
// row by how much it is more, in as many bytes as the largest of these takes. A column of equal
// numbers takes none. Times take 3 bytes, ids that count up 1 or 2. Bits instead of bytes would
// save a tenth more and make reading slower; deltas from row to row could not be read alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "report/base/growing_array.h"

namespace xpu {

template <size_t kColumns>
class PackedColumns {
 public:
  using Row = std::array<uint64_t, kColumns>;

  PackedColumns() = default;
  PackedColumns(PackedColumns&& other) noexcept
      : bytes_(std::move(other.bytes_)),
        groups_(std::move(other.groups_)),
        size_(std::exchange(other.size_, 0)) {}
  PackedColumns& operator=(PackedColumns&& other) noexcept {
    PackedColumns taken(std::move(other));
    std::swap(bytes_, taken.bytes_);
    std::swap(groups_, taken.groups_);
    std::swap(size_, taken.size_);
    return *this;
  }

  size_t size() const { return size_; }

  void push_back(const Row& row) {
    const size_t at = size_ % kGroupRows;
    if (at == 0) BeginGroup();
    uint8_t* to = bytes_.begin() + groups_.back().place + at * sizeof(uint64_t);
    for (const uint64_t number : row) {
      std::memcpy(to, &number, sizeof(number));
      to += kWholeColumnBytes;
    }
    ++size_;
    if (at + 1 == kGroupRows) PackGroup();
  }

  [[gnu::always_inline]] uint64_t Get(size_t column, size_t row) const {
    const Group& group = groups_[row / kGroupRows];
    const Part& part = group.parts[column];
    uint64_t number;
    std::memcpy(&number,
                bytes_.begin() + group.place + part.begin + row % kGroupRows * part.row_bytes,
                sizeof(number));
    return part.least + (number & part.mask);
  }

  Row operator[](size_t index) const {
    Row row;
    for (size_t column = 0; column < kColumns; ++column) row[column] = Get(column, index);
    return row;
  }

 private:
  static constexpr size_t kGroupRows = 256;
  static constexpr size_t kWholeColumnBytes = kGroupRows * sizeof(uint64_t);

  // The numbers of a column in a group.
  struct Part {
    uint64_t least;
    uint64_t mask;       // of the bytes that a row has
    uint32_t begin;      // from Group::place
    uint32_t row_bytes;  // 0 to 8
  };
  struct Group {
    uint64_t place;  // in bytes_
    std::array<Part, kColumns> parts;
  };

  // The rows of the last group are whole numbers, until it has all of its rows.
  void BeginGroup() {
    const size_t place = bytes_.size();
    Group group{.place = place, .parts = {}};
    for (size_t column = 0; column < kColumns; ++column) {
      group.parts[column] = {.least = 0,
                             .mask = ~uint64_t{0},
                             .begin = static_cast<uint32_t>(column * kWholeColumnBytes),
                             .row_bytes = sizeof(uint64_t)};
    }
    groups_.push_back(group);
    bytes_.Resize(place + kColumns * kWholeColumnBytes);
  }

  // In place: a packed number never lies beyond its whole one.
  void PackGroup() {
    Group& group = groups_.back();
    uint8_t* const begin = bytes_.begin() + group.place;
    uint8_t* to = begin;
    for (size_t column = 0; column < kColumns; ++column) {
      const uint8_t* from = begin + column * kWholeColumnBytes;
      uint64_t least = ~uint64_t{0};
      uint64_t most = 0;
      for (size_t i = 0; i < kGroupRows; ++i) {
        least = std::min(least, WholeNumber(from, i));
        most = std::max(most, WholeNumber(from, i));
      }
      const auto row_bytes = static_cast<uint32_t>((std::bit_width(most - least) + 7) / 8);
      group.parts[column] = {
          .least = least,
          .mask = row_bytes == 0 ? 0 : ~uint64_t{0} >> (sizeof(uint64_t) - row_bytes) * 8,
          .begin = static_cast<uint32_t>(to - begin),
          .row_bytes = row_bytes};
      if (row_bytes == 0) continue;
      // The next number overwrites what one writes beyond its bytes. The last one of a column
      // writes no further than to the end of its whole number.
      for (size_t i = 0; i < kGroupRows; ++i) {
        const uint64_t more = WholeNumber(from, i) - least;
        std::memcpy(to, &more, sizeof(more));
        to += row_bytes;
      }
    }
    bytes_.Resize(static_cast<size_t>(to - bytes_.begin()));
  }

  static uint64_t WholeNumber(const uint8_t* column, size_t row) {
    uint64_t number;
    std::memcpy(&number, column + row * sizeof(number), sizeof(number));
    return number;
  }

  // Packed groups, then the last one. Each number can be read as eight bytes: what was mapped for
  // the whole numbers of its group, which it lies in, stays mapped.
  GrowingArray<uint8_t> bytes_;
  GrowingArray<Group> groups_;
  size_t size_ = 0;
};

}  // namespace xpu
