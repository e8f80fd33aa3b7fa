// Reads the fields of call frame information, never outside its bytes: a read that does not fit
// gives 0, moves to the end and is remembered (`failed`), so that a parser tests once at its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace xpu {

// DW_EH_PE_: how a pointer is written; the low four bits are the size, the others what is added.
inline constexpr uint8_t kEhAbsolute = 0x00;
inline constexpr uint8_t kEhUleb128 = 0x01;
inline constexpr uint8_t kEhUdata2 = 0x02;
inline constexpr uint8_t kEhUdata4 = 0x03;
inline constexpr uint8_t kEhUdata8 = 0x04;
inline constexpr uint8_t kEhSleb128 = 0x09;
inline constexpr uint8_t kEhSdata2 = 0x0a;
inline constexpr uint8_t kEhSdata4 = 0x0b;
inline constexpr uint8_t kEhSdata8 = 0x0c;
inline constexpr uint8_t kEhSizeMask = 0x0f;
inline constexpr uint8_t kEhPcRelative = 0x10;
inline constexpr uint8_t kEhDataRelative = 0x30;
inline constexpr uint8_t kEhBaseMask = 0x70;
inline constexpr uint8_t kEhIndirect = 0x80;
inline constexpr uint8_t kEhOmit = 0xff;

class CfiCursor {
 public:
  CfiCursor() = default;
  // `link_address`: of the first byte, for pointers relative to their own place.
  CfiCursor(std::span<const std::byte> bytes, uint64_t link_address)
      : begin_(bytes.data()),
        at_(begin_),
        end_(begin_ + bytes.size()),
        link_address_(link_address) {}

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
    if (left() < sizeof(T)) {
      Fail();
      return 0;
    }
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t Uleb128() {
    uint64_t value = 0;
    unsigned shift = 0;
    while (at_ < end_) {
      const auto byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }

  int64_t Sleb128() {
    uint64_t value = 0;
    unsigned shift = 0;
    while (at_ < end_) {
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

  void Skip(uint64_t bytes) {
    if (left() < bytes) {
      Fail();
    } else {
      at_ += bytes;
    }
  }

  // The next `bytes` as a cursor of their own; this one moves after them.
  CfiCursor Take(uint64_t bytes) {
    CfiCursor part;
    if (left() < bytes) {
      Fail();
      return part;
    }
    part = CfiCursor({at_, bytes}, link_address_ + offset());
    at_ += bytes;
    return part;
  }

  // The zero-terminated text here.
  const char* Text() {
    const void* zero = empty() ? nullptr : std::memchr(at_, 0, left());
    if (zero == nullptr) {
      Fail();
      return "";
    }
    const char* text = reinterpret_cast<const char*>(at_);
    at_ = static_cast<const std::byte*>(zero) + 1;
    return text;
  }

  // The value alone, without what its encoding adds: also the form of a length.
  uint64_t PointerValue(uint8_t encoding) {
    switch (encoding & kEhSizeMask) {
      case kEhAbsolute:
      case kEhUdata8:
      case kEhSdata8:
        return Read<uint64_t>();
      case kEhUdata4:
        return Read<uint32_t>();
      case kEhSdata4:
        return static_cast<uint64_t>(int64_t{Read<int32_t>()});
      case kEhUdata2:
        return Read<uint16_t>();
      case kEhSdata2:
        return static_cast<uint64_t>(int64_t{Read<int16_t>()});
      case kEhUleb128:
        return Uleb128();
      case kEhSleb128:
        return static_cast<uint64_t>(Sleb128());
      default:
        Fail();
        return 0;
    }
  }

  // A pointer to code. `data_base`: what data-relative ones count from. Indirect ones point to
  // memory that only the loader fills: refused, as are bases that x86-64 has no use for.
  uint64_t Pointer(uint8_t encoding, std::optional<uint64_t> data_base = std::nullopt) {
    const uint64_t place = link_address_ + offset();
    const uint64_t value = PointerValue(encoding);
    if ((encoding & kEhIndirect) == 0) {
      const uint8_t base = encoding & kEhBaseMask;
      if (base == 0) return value;
      if (base == kEhPcRelative) return place + value;
      if (base == kEhDataRelative && data_base) return *data_base + value;
    }
    Fail();
    return 0;
  }

 private:
  const std::byte* begin_ = nullptr;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  uint64_t link_address_ = 0;
  bool failed_ = false;
};

}  // namespace xpu
