// Reading out of the bytes of an ELF file: every offset is untrusted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace xpu {

// Longer names are no names: in a damaged table of strings each of a million symbols could have
// one as long as the table. The longest of real template libraries have some 20 KB.
constexpr size_t kMaxElfNameBytes = 65536;

// Copies a T out of `bytes`; false when it does not lie inside.
template <typename T>
bool ReadAt(std::span<const std::byte> bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

// The part of [offset, offset + size) that lies inside `bytes`.
inline std::span<const std::byte> Inside(std::span<const std::byte> bytes, uint64_t offset,
                                         uint64_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min<uint64_t>(size, bytes.size() - offset));
}

inline std::span<const char> AsChars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The zero-terminated text at `offset`; empty when it has no end, or only a far one.
inline std::string_view TextAt(std::span<const char> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const size_t limit = std::min<uint64_t>(table.size() - offset, kMaxElfNameBytes);
  const char* begin = table.data() + offset;
  const void* end = std::memchr(begin, 0, limit);
  if (end == nullptr) return {};
  return {begin, static_cast<size_t>(static_cast<const char*>(end) - begin)};
}

}  // namespace xpu
