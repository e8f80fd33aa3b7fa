#include "cupti_inject/loader_counters.h"

#include <dlfcn.h>
#include <link.h>

namespace xpu::inject {
namespace {

constexpr size_t kStep = 8;  // an unsigned long long, of which the lower half does

const uint32_t* WordAt(const std::byte* place) { return reinterpret_cast<const uint32_t*>(place); }

}  // namespace

void LoaderCounters::Open() {
  const void* place = dlsym(RTLD_DEFAULT, "_rtld_global");
  Dl_info info;
  void* symbol = nullptr;
  if (place == nullptr || dladdr1(place, &info, &symbol, RTLD_DL_SYMENT) == 0) return;
  if (symbol == nullptr || info.dli_saddr != place) return;
  begin_ = static_cast<const std::byte*>(place);
  bytes_ = static_cast<const ElfW(Sym)*>(symbol)->st_size;
}

void LoaderCounters::Close() {
  begin_ = nullptr;
  count_.store(0, std::memory_order_relaxed);
}

void LoaderCounters::Follow(uint64_t adds) {
  if (begin_ == nullptr) return;
  const auto loads = static_cast<uint32_t>(adds);
  const uint32_t before = count_.load(std::memory_order_relaxed);
  uint32_t count = 0;
  for (uint32_t i = 0; i < before; ++i) {
    const uint32_t* word = words_[i].load(std::memory_order_relaxed);
    if (__atomic_load_n(word, __ATOMIC_RELAXED) != loads) continue;
    words_[count++].store(word, std::memory_order_relaxed);
  }
  if (before == 0) {
    for (size_t at = 0; at + kStep <= bytes_ && count < kMaxWords; at += kStep) {
      const uint32_t* word = WordAt(begin_ + at);
      if (__atomic_load_n(word, __ATOMIC_RELAXED) == loads) words_[count++].store(word);
    }
    // Too many to hold the right one for sure.
    if (count == kMaxWords) count = 0;
  } else if (count == 0) {
    begin_ = nullptr;  // none of them was it
  }
  count_.store(count, std::memory_order_release);
}

}  // namespace xpu::inject
