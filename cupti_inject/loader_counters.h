// How often the loader has loaded a file, read where the loader itself counts: a callback, which
// may not ask it (dl_iterate_phdr takes its lock), sees whether a list of files is still the right
// one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xpu::inject {

// The number (dlpi_adds) lies in glibc's _rtld_global, of which only the size is public: it is
// found by its value. Words that have it by chance are distinguished at the next change. Other
// libcs: never found.
class LoaderCounters {
 public:
  // Finds where glibc keeps what is its own.
  void Open();
  void Close();

  // What dl_iterate_phdr says, within its callback: the loader counts under the lock that is held
  // there. One thread at a time.
  void Follow(uint64_t adds);

  // What of it is known now, at least; 0: nothing. Any thread.
  uint32_t Loads() const {
    uint32_t most = 0;
    const uint32_t count = count_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t* word = words_[i].load(std::memory_order_relaxed);
      const uint32_t loads = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      if (loads > most) most = loads;
    }
    return most;
  }

 private:
  static constexpr uint32_t kMaxWords = 16;

  const std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<uint32_t> count_{0};
  std::atomic<const uint32_t*> words_[kMaxWords] = {};
};

}  // namespace xpu::inject
