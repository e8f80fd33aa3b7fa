// How a symbol slice is cut into the events that carry it.
#pragma once

#include <cstddef>
#include <string_view>

#include "format/base/result.h"
#include "format/events.h"

namespace xpu {

// Well below kMaxStringBytes, and several to a block.
inline constexpr size_t kSlicePartBytes = size_t{512} << 10;

struct SliceText {
  std::string_view path;
  std::string_view build_id;
  SymbolDetail detail = SymbolDetail::kUnknown;
  std::string_view bytes;
};

// intern(text) gives a StringId that holds until the next write(event), which returns a Status.
template <typename Intern, typename Write>
Status WriteSliceParts(const SliceText& slice, Intern&& intern, Write&& write) {
  const size_t parts = (slice.bytes.size() + kSlicePartBytes - 1) / kSlicePartBytes;
  for (size_t part = 0; part < parts; ++part) {
    SymbolSlice event;
    event.path = intern(slice.path);
    event.build_id = intern(slice.build_id);
    event.detail = slice.detail;
    event.part = static_cast<uint32_t>(part);
    event.part_count = static_cast<uint32_t>(parts);
    event.bytes = intern(slice.bytes.substr(part * kSlicePartBytes, kSlicePartBytes));
    XPU_RETURN_IF_ERROR(write(event));
  }
  return Ok();
}

}  // namespace xpu
