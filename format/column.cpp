#include "format/column.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace xpu {
namespace {

using Origin = schema::Column::Origin;

constexpr unsigned kBitsPerPlane = 8;
constexpr unsigned kMaxPlanes = 8;

// How far each value is from what it is counted from; of the first of earlierRow: 0.
std::vector<uint64_t> OffsetsFrom(Origin origin, std::span<const uint64_t> values,
                                  std::span<const uint64_t> before) {
  std::vector<uint64_t> offsets(values.begin(), values.end());
  if (origin == Origin::EARLIER_ROW) {
    for (size_t i = 1; i < offsets.size(); ++i) offsets[i] -= values[i - 1];
    offsets[0] = 0;
  } else if (origin == Origin::COLUMN_BEFORE) {
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] -= before[i];
  }
  return offsets;
}

// How far a value is from its origin, whatever the direction.
unsigned BitsOfDistance(uint64_t difference) {
  const auto distance = static_cast<int64_t>(difference);
  return static_cast<unsigned>(std::bit_width(difference ^ static_cast<uint64_t>(distance >> 63)));
}

struct VaryingBits {
  uint64_t zero = 0;     // as they are, from the lowest one
  uint64_t earlier = 0;  // from the value before
  uint64_t beside = 0;   // from the column before
};

// Of the values [begin, end). `begin` > 0.
void AddBits(std::span<const uint64_t> values, std::span<const uint64_t> before, uint64_t lowest,
             size_t begin, size_t end, VaryingBits& bits) {
  for (size_t i = begin; i < end; ++i) {
    bits.zero += static_cast<unsigned>(std::bit_width(values[i] - lowest));
    bits.earlier += BitsOfDistance(values[i] - values[i - 1]);
    if (!before.empty()) bits.beside += BitsOfDistance(values[i] - before[i]);
  }
}

// An estimate of the bytes after compression: the sum of the bits that vary. Of a long column in a
// few runs that are spread over it.
Origin ChooseOrigin(std::span<const uint64_t> values, std::span<const uint64_t> before) {
  constexpr size_t kRuns = 4, kRunLength = 256;
  const uint64_t lowest = *std::min_element(
      values.begin(), values.end(),
      [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a) < static_cast<int64_t>(b); });
  VaryingBits bits;
  if (values.size() <= kRuns * kRunLength) {
    AddBits(values, before, lowest, 1, values.size(), bits);
  } else {
    for (size_t run = 0; run < kRuns; ++run) {
      const size_t begin = 1 + run * (values.size() - 1 - kRunLength) / (kRuns - 1);
      AddBits(values, before, lowest, begin, begin + kRunLength, bits);
    }
  }
  // Values that repeat in a pattern compress best as they are: the others must be clearly better.
  const uint64_t clearly = bits.zero - bits.zero / 4;
  if (!before.empty() && bits.beside < clearly && bits.beside < bits.earlier) {
    return Origin::COLUMN_BEFORE;
  }
  return bits.earlier < clearly ? Origin::EARLIER_ROW : Origin::ZERO;
}

void EncodePlanes(std::span<const uint64_t> offsets, uint64_t all_bits,
                  schema::Column::Builder column) {
  const unsigned count = (static_cast<unsigned>(std::bit_width(all_bits)) + kBitsPerPlane - 1) / 8;
  if (count == 0) return;
  auto planes = column.initPlanes(count);
  for (unsigned plane = 0; plane < count; ++plane) {
    const unsigned shift = plane * kBitsPerPlane;
    if (((all_bits >> shift) & 0xff) == 0) continue;
    capnp::Data::Builder bytes = planes.init(plane, static_cast<unsigned>(offsets.size()));
    capnp::byte* to = bytes.begin();
    for (const uint64_t offset : offsets) *to++ = static_cast<uint8_t>(offset >> shift);
  }
}

}  // namespace

bool IsZeroColumn(std::span<const uint64_t> values) {
  return std::all_of(values.begin(), values.end(), [](uint64_t value) { return value == 0; });
}

void EncodeColumn(std::span<const uint64_t> values, std::span<const uint64_t> before,
                  schema::Column::Builder column) {
  if (std::all_of(values.begin(), values.end(),
                  [&values](uint64_t value) { return value == values[0]; })) {
    column.setBase(values[0]);
    return;
  }
  const Origin origin = ChooseOrigin(values, before);
  const size_t begin = origin == Origin::EARLIER_ROW ? 1 : 0;
  std::vector<uint64_t> offsets = OffsetsFrom(origin, values, before);
  int64_t base = INT64_MAX;
  for (size_t i = begin; i < values.size(); ++i) {
    base = std::min(base, static_cast<int64_t>(offsets[i]));
  }
  uint64_t all_bits = 0;
  for (size_t i = begin; i < values.size(); ++i) {
    offsets[i] -= static_cast<uint64_t>(base);
    all_bits |= offsets[i];
  }
  column.setOrigin(origin);
  column.setBase(static_cast<uint64_t>(base));
  if (origin == Origin::EARLIER_ROW) column.setFirst(values[0]);
  EncodePlanes(offsets, all_bits, column);
}

std::optional<uint64_t> ValueOfAll(schema::Column::Reader column) {
  if (column.getOrigin() != Origin::ZERO || column.getPlanes().size() > 0) return std::nullopt;
  return column.getBase();
}

bool IsFromColumnBefore(schema::Column::Reader column) {
  return column.getOrigin() == Origin::COLUMN_BEFORE;
}

bool DecodeColumn(schema::Column::Reader column, std::span<const uint64_t> before,
                  std::span<uint64_t> values) {
  std::fill(values.begin(), values.end(), 0);
  const auto planes = column.getPlanes();
  if (planes.size() > kMaxPlanes) return false;
  for (unsigned plane = 0; plane < planes.size(); ++plane) {
    const capnp::Data::Reader bytes = planes[plane];
    if (bytes.size() == 0) continue;
    if (bytes.size() != values.size()) return false;
    const unsigned shift = plane * kBitsPerPlane;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] |= static_cast<uint64_t>(bytes[i]) << shift;
    }
  }
  const uint64_t base = column.getBase();
  switch (column.getOrigin()) {
    case Origin::ZERO:
      for (uint64_t& value : values) value += base;
      return true;
    case Origin::EARLIER_ROW:
      if (!values.empty()) values[0] = column.getFirst();
      for (size_t i = 1; i < values.size(); ++i) values[i] += values[i - 1] + base;
      return true;
    case Origin::COLUMN_BEFORE:
      if (before.size() != values.size()) return false;
      for (size_t i = 0; i < values.size(); ++i) values[i] += before[i] + base;
      return true;
  }
  return false;  // a kind of a newer version
}

}  // namespace xpu
