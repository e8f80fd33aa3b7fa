// The text of a trace on its way out. A trace has hundreds of millions of small pieces: with
// std::string's appends, which are calls, the pieces took twice the time.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace xpu {

class TraceText {
 public:
  void Put(std::string_view text) { std::memcpy(Room(text.size()), text.data(), text.size()); }
  template <size_t kBytes>
  void Put(const char (&literal)[kBytes]) {
    std::memcpy(Room(kBytes - 1), literal, kBytes - 1);
  }
  void Put(char c) { *Room(1) = c; }

  template <std::integral Number>
  void PutNumber(Number number) {
    constexpr size_t kMostDigits = 20;
    char* const begin = Room(kMostDigits);
    size_ -= static_cast<size_t>(begin + kMostDigits -
                                 std::to_chars(begin, begin + kMostDigits, number).ptr);
  }
  // 12345: 12.345
  void PutThousandths(uint64_t number) {
    PutNumber(number / 1000);
    char* const fraction = Room(4);
    fraction[0] = '.';
    fraction[1] = static_cast<char>('0' + number / 100 % 10);
    fraction[2] = static_cast<char>('0' + number / 10 % 10);
    fraction[3] = static_cast<char>('0' + number % 10);
  }

  size_t size() const { return size_; }
  std::string_view view() const { return {bytes_.data(), size_}; }
  void Clear() { size_ = 0; }

 private:
  // For `bytes` more, which count as put.
  char* Room(size_t bytes) {
    if (bytes > bytes_.size() - size_) bytes_.resize(2 * bytes_.size() + bytes);
    size_ += bytes;
    return bytes_.data() + size_ - bytes;
  }

  std::vector<char> bytes_;
  size_t size_ = 0;
};

}  // namespace xpu
