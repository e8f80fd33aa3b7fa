// Texts that the program registers with NVTX, to name them by a handle afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xpu::inject {

struct TextView {
  const char* text = nullptr;
  size_t bytes = 0;
};

// Cut at wire::kMaxNameBytes; nullptr is an empty one.
TextView ViewOf(const char* text);

// A wide text in UTF-8, cut to the room there is.
class NarrowText {
 public:
  explicit NarrowText(const wchar_t* wide);
  TextView view() const { return {text_, bytes_}; }

 private:
  char text_[1024];
  size_t bytes_ = 0;
};

// Memory is our own, mapped at the first text and touched as it fills; without it every text is
// empty. Any thread at any time.
class RegisteredTexts {
 public:
  static constexpr size_t kBytes = size_t{16} << 20;

  // nullptr: there is no room for it.
  const void* Add(TextView text);
  // What such a handle names; any value is allowed.
  TextView Find(const void* handle) const;

 private:
  std::byte* Memory();

  std::atomic<std::byte*> memory_{nullptr};
  std::atomic<size_t> used_{0};
};

}  // namespace xpu::inject
