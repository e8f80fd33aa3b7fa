// Reads the fields of DWARF, never outside of its bytes: a read that does not fit gives 0, moves to
// the end and is remembered (`failed`), so that a parser tests once at its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace xpu::dwarf {

// What the length of a unit says: 4 or 8 bytes for each offset in it.
struct UnitLength {
  uint64_t bytes = 0;
  uint8_t offset_bytes = 4;
};

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::string_view bytes, uint64_t offset = 0)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {
    Skip(offset);
  }

  bool failed() const { return failed_; }
  bool empty() const { return at_ == end_; }
  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  uint64_t offset() const { return static_cast<uint64_t>(at_ - begin_); }

  void Fail() {
    failed_ = true;
    at_ = end_;
  }

  template <typename T>
  T Read() {
    T value{};
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint8_t U8() { return Read<uint8_t>(); }
  uint16_t U16() { return Read<uint16_t>(); }
  uint32_t U32() { return Read<uint32_t>(); }
  uint64_t U64() { return Read<uint64_t>(); }

  // A number of 0 to 8 bytes.
  uint64_t Fixed(unsigned bytes) {
    if (bytes == 4) return U32();
    uint64_t value = 0;
    if (bytes > sizeof(value) || left() < bytes) {
      Fail();
      return 0;
    }
    std::memcpy(&value, at_, bytes);
    at_ += bytes;
    return value;
  }

  uint64_t Uleb() {
    if (at_ < end_ && static_cast<uint8_t>(*at_) < 0x80) [[likely]] {
      return static_cast<uint8_t>(*at_++);
    }
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }

  int64_t Sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < end_;) {
      const auto byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    Fail();
    return 0;
  }

  void SkipLeb() {
    while (at_ < end_) {
      if ((static_cast<uint8_t>(*at_++) & 0x80) == 0) return;
    }
    Fail();
  }

  void Skip(uint64_t bytes) {
    if (left() < bytes) {
      Fail();
    } else {
      at_ += bytes;
    }
  }

  std::string_view Take(uint64_t bytes) {
    if (left() < bytes) {
      Fail();
      return {};
    }
    const std::string_view taken(at_, bytes);
    at_ += bytes;
    return taken;
  }

  // The zero-terminated text here.
  std::string_view Text() {
    const void* zero = empty() ? nullptr : std::memchr(at_, 0, left());
    if (zero == nullptr) {
      Fail();
      return {};
    }
    const char* text = at_;
    at_ = static_cast<const char*>(zero) + 1;
    return {text, static_cast<size_t>(at_ - 1 - text)};
  }

  UnitLength ReadUnitLength() {
    const uint32_t length = U32();
    if (length < 0xfffffff0) return {.bytes = length, .offset_bytes = 4};
    if (length != 0xffffffff) Fail();
    return {.bytes = U64(), .offset_bytes = 8};
  }

 private:
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool failed_ = false;
};

// The zero-terminated text at `offset` of a table of texts; empty when there is none. No name is
// longer than a mebibyte: a search through a damaged table could cost all of it each time.
inline std::string_view TextAt(std::string_view table, uint64_t offset) {
  constexpr size_t kLongest = 1 << 20;
  if (offset >= table.size()) return {};
  ByteReader reader(table.substr(offset, kLongest));
  return reader.Text();
}

}  // namespace xpu::dwarf
