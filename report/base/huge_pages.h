// Large pages for the long lists of a report: filling them takes few page faults, which were a
// third of the time of reports on millions of events.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace xpu {

// From here on: the last one of a list is on average half empty, and a page has 2 MiB.
inline constexpr size_t kManyHugePagesBytes = size_t{16} << 20;

// Zeros. Those that are never touched take no memory.
inline void* MapPages(size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

// A wish: where it is not granted, the pages are small ones.
inline void WantHugePages(void* pages, size_t bytes) {
  if (bytes >= kManyHugePagesBytes) static_cast<void>(::madvise(pages, bytes, MADV_HUGEPAGE));
}

// For a std::vector that becomes long. While one grows whose size was not reserved, it takes up to
// three times its memory; GrowingArray does not.
template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  explicit HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(size_t count) {
    if (!IsLarge(count)) return std::allocator<T>().allocate(count);
    void* pages = MapPages(count * sizeof(T));
    WantHugePages(pages, count * sizeof(T));
    return static_cast<T*>(pages);
  }
  void deallocate(T* data, size_t count) {
    if (!IsLarge(count)) return std::allocator<T>().deallocate(data, count);
    ::munmap(data, count * sizeof(T));
  }

  friend bool operator==(HugePageAllocator, HugePageAllocator) { return true; }

 private:
  static bool IsLarge(size_t count) { return count >= kManyHugePagesBytes / sizeof(T); }
};

template <typename T>
using HugePageVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace xpu
