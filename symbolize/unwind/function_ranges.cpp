#include "symbolize/unwind/function_ranges.h"

#include <algorithm>

#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

constexpr size_t kRowBytes = 2 * sizeof(int32_t);

}  // namespace

FunctionRanges::FunctionRanges(const ElfImage& image) {
  const ElfSection header = image.eh_frame_header();
  CfiCursor cursor(header.bytes, header.link_address);
  const auto version = cursor.Read<uint8_t>();
  const auto pointer_encoding = cursor.Read<uint8_t>();
  const auto count_encoding = cursor.Read<uint8_t>();
  const auto table_encoding = cursor.Read<uint8_t>();
  cursor.Pointer(pointer_encoding, header.link_address);
  if (version != 1 || count_encoding == kEhOmit) return;
  // The one form that can be searched, and the only one that linkers write.
  if (table_encoding != (kEhDataRelative | kEhSdata4)) return;
  const uint64_t count = cursor.Pointer(count_encoding, header.link_address);
  if (cursor.failed()) return;
  table_ = header.bytes.subspan(cursor.offset());
  table_ = table_.first(std::min<uint64_t>(count, table_.size() / kRowBytes) * kRowBytes);
  header_address_ = header.link_address;
  frames_ = FindEhFrame(image);
}

FunctionRanges::Entry FunctionRanges::EntryAt(size_t i) const {
  int32_t offsets[2] = {};
  ReadAt(table_, i * kRowBytes, offsets);
  return {header_address_ + static_cast<uint64_t>(int64_t{offsets[0]}),
          header_address_ + static_cast<uint64_t>(int64_t{offsets[1]})};
}

std::optional<FunctionRanges::Range> FunctionRanges::Find(uint64_t link_address) const {
  if (!frames_) return std::nullopt;
  size_t behind = 0;  // of the entries that begin at or before the address
  for (size_t end = table_.size() / kRowBytes; behind < end;) {
    const size_t middle = behind + (end - behind) / 2;
    if (EntryAt(middle).begin <= link_address) {
      behind = middle + 1;
    } else {
      end = middle;
    }
  }
  if (behind == 0) return std::nullopt;
  const Entry entry = EntryAt(behind - 1);
  const std::optional<Fde> fde = ReadFdeAt(*frames_, entry.fde - frames_->link_address);
  if (!fde || fde->begin > link_address || fde->end <= link_address) return std::nullopt;
  return Range{fde->begin, fde->end};
}

}  // namespace xpu
