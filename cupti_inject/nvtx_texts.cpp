#include "cupti_inject/nvtx_texts.h"

#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/wire.h"
#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

// Returns how many bytes; what is no character becomes U+FFFD.
size_t Encode(uint32_t character, char (&utf8)[4]) {
  if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) character = 0xfffd;
  if (character < 0x80) {
    utf8[0] = static_cast<char>(character);
    return 1;
  }
  const size_t bytes = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  constexpr uint8_t kFirst[] = {0xc0, 0xe0, 0xf0};
  for (size_t i = bytes - 1; i > 0; --i, character >>= 6) {
    utf8[i] = static_cast<char>(0x80 | (character & 0x3f));
  }
  utf8[0] = static_cast<char>(kFirst[bytes - 2] | character);
  return bytes;
}

}  // namespace

TextView ViewOf(const char* text) {
  return {text, text == nullptr ? 0 : strnlen(text, wire::kMaxNameBytes)};
}

NarrowText::NarrowText(const wchar_t* wide) {
  for (; wide != nullptr && *wide != 0; ++wide) {
    char utf8[4];
    const size_t bytes = Encode(static_cast<uint32_t>(*wide), utf8);
    if (bytes > sizeof(text_) - bytes_) return;
    std::memcpy(text_ + bytes_, utf8, bytes);
    bytes_ += bytes;
  }
}

std::byte* RegisteredTexts::Memory() {
  std::byte* memory = memory_.load(std::memory_order_acquire);
  if (memory != nullptr) return memory;
  void* mapped = MapZeroed(kBytes);
  if (mapped == nullptr) return nullptr;
  if (memory_.compare_exchange_strong(memory, static_cast<std::byte*>(mapped))) {
    return static_cast<std::byte*>(mapped);
  }
  munmap(mapped, kBytes);
  return memory;
}

// Each is its size, then its bytes. A handle is its place, from 1.
const void* RegisteredTexts::Add(TextView text) {
  const auto size = static_cast<uint32_t>(text.bytes);
  const size_t room = (sizeof(size) + size + 7) / 8 * 8;
  std::byte* const memory = Memory();
  size_t place = used_.load(std::memory_order_relaxed);
  do {
    if (memory == nullptr || room > kBytes - place) return nullptr;
  } while (!used_.compare_exchange_weak(place, place + room, std::memory_order_relaxed));
  std::memcpy(memory + place, &size, sizeof(size));
  if (size > 0) std::memcpy(memory + place + sizeof(size), text.text, size);
  return reinterpret_cast<const void*>(place + 1);
}

TextView RegisteredTexts::Find(const void* handle) const {
  const size_t used = used_.load(std::memory_order_relaxed);
  const size_t place = reinterpret_cast<uintptr_t>(handle) - 1;
  uint32_t size = 0;
  const std::byte* const memory = memory_.load(std::memory_order_acquire);
  if (memory == nullptr || place % 8 != 0 || place >= used) return {};
  std::memcpy(&size, memory + place, sizeof(size));
  if (size > used - place - sizeof(size)) return {};
  return {reinterpret_cast<const char*>(memory) + place + sizeof(size), size};
}

}  // namespace xpu::inject
