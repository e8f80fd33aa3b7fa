// Appends the fields of DWARF to a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

namespace xpu::dwarf {

class ByteWriter {
 public:
  template <typename T>
  void Put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }
  void U8(unsigned value) { Put(static_cast<uint8_t>(value)); }
  void U16(unsigned value) { Put(static_cast<uint16_t>(value)); }
  void U32(uint64_t value) { Put(static_cast<uint32_t>(value)); }
  void U64(uint64_t value) { Put(value); }

  void Uleb(uint64_t value) {
    while (value >= 0x80) {
      U8((value & 0x7f) | 0x80);
      value >>= 7;
    }
    U8(static_cast<unsigned>(value));
  }

  void Sleb(int64_t value) {
    while (value < -0x40 || value >= 0x40) {
      U8((value & 0x7f) | 0x80);
      value >>= 7;
    }
    U8(value & 0x7f);
  }

  void Append(std::string_view bytes) { bytes_ += bytes; }

  // A length of 4 bytes that counts what comes after it.
  size_t BeginLength() {
    U32(0);
    return bytes_.size();
  }
  void EndLength(size_t begin) {
    const auto length = static_cast<uint32_t>(bytes_.size() - begin);
    std::memcpy(bytes_.data() + begin - sizeof(length), &length, sizeof(length));
  }

  uint64_t size() const { return bytes_.size(); }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

// A section of texts, each once.
class TextWriter {
 public:
  uint64_t OffsetOf(std::string_view text) {
    const auto [found, is_new] = offsets_.try_emplace(std::string(text), bytes_.size());
    if (is_new) bytes_.append(text).push_back('\0');
    return found->second;
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
  std::map<std::string, uint64_t, std::less<>> offsets_;
};

}  // namespace xpu::dwarf
