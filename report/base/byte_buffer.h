// Bytes on their way out, collected in small pieces.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace xpu {

// A trace has hundreds of millions of small pieces: with std::string's appends, which are calls,
// the pieces took twice the time.
class ByteBuffer {
 public:
  size_t size() const { return size_; }
  std::string_view view() const { return {bytes_.data(), size_}; }
  void Clear() { size_ = 0; }

 protected:
  void Append(std::string_view bytes) {
    std::memcpy(Room(bytes.size()), bytes.data(), bytes.size());
  }
  // For `bytes` more, which count as put.
  char* Room(size_t bytes) {
    if (bytes > bytes_.size() - size_) bytes_.resize(2 * bytes_.size() + bytes);
    size_ += bytes;
    return bytes_.data() + size_ - bytes;
  }
  // The last piece ends at `end`: the rest of its room was not needed.
  void EndAt(const char* end) { size_ = static_cast<size_t>(end - bytes_.data()); }
  char& At(size_t place) { return bytes_[place]; }

 private:
  std::vector<char> bytes_;
  size_t size_ = 0;
};

}  // namespace xpu
