// Parses messages of the injected library (cupti_inject/wire.h).
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace xpu {

// The fixed part of a message. Message structs hold an atomic, so the bytes that follow it are
// copied by offset.
template <typename Message>
struct FixedPart {
  alignas(Message) std::byte bytes[sizeof(Message)];
  const Message* operator->() const { return reinterpret_cast<const Message*>(bytes); }
};

// nullopt if the message is shorter.
template <typename Message>
std::optional<FixedPart<Message>> ReadFixed(std::span<const std::byte> message) {
  if (message.size() < sizeof(Message)) return std::nullopt;
  FixedPart<Message> fixed;
  std::memcpy(fixed.bytes, message.data(), sizeof(Message));
  return fixed;
}

// The `size` bytes after the fixed part; nullopt if the message is shorter.
inline std::optional<std::span<const std::byte>> BytesAfter(std::span<const std::byte> message,
                                                            size_t fixed, size_t size) {
  if (message.size() - fixed < size) return std::nullopt;
  return message.subspan(fixed, size);
}

inline std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace xpu
