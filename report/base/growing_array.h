// A long array whose size is not known ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

#include "report/base/huge_pages.h"

namespace xpu {

// A long array that grows in place: the kernel moves its pages instead of copying them, so that it
// never takes twice its memory.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GrowingArray() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  T& back() { return data_[size_ - 1]; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }

  // Takes a copy: the value may be one of its own, which growing moves.
  void push_back(T value) {
    if ((size_ + 1) * sizeof(T) > bytes_) Grow();
    new (data_ + size_) T(value);
    ++size_;
  }

  // Added elements have any values; removed ones leave their memory to those that are added next.
  void Resize(size_t size) {
    while (size * sizeof(T) > bytes_) Grow();
    size_ = size;
  }

 private:
  static constexpr size_t kFirstBytes = size_t{64} << 10;

  void Grow() {
    const size_t bytes = std::max(kFirstBytes, 2 * bytes_);
    void* grown =
        data_ == nullptr ? MapPages(bytes) : ::mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) throw std::bad_alloc();
    WantHugePages(grown, bytes);
    data_ = static_cast<T*>(grown);
    bytes_ = bytes;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t bytes_ = 0;  // mapped; those that nothing was put into take no memory
};

}  // namespace xpu
