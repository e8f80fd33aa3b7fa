// Columns: the numbers of one field of many events, in as few bytes as they need.
// The encoding is described where it is declared, in capture.capnp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "format/capture.capnp.h"

namespace xpu {

// True when every value is 0: the column is then left out of the message.
bool IsZeroColumn(std::span<const uint64_t> values);

// `before`: the values of the column before it, empty if there is none.
void EncodeColumn(std::span<const uint64_t> values, std::span<const uint64_t> before,
                  schema::Column::Builder column);

// The value of each row, where it is one and the same for any number of them.
std::optional<uint64_t> ValueOfAll(schema::Column::Reader column);

// Whether DecodeColumn needs `before`.
bool IsFromColumnBefore(schema::Column::Reader column);

// Fills `values`. False: the column does not have this many values, or is of an unknown kind.
bool DecodeColumn(schema::Column::Reader column, std::span<const uint64_t> before,
                  std::span<uint64_t> values);

}  // namespace xpu
