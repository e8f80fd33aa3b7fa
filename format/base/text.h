// Text formatting. The one place that knows the formatting library (libfmt), so that std::format
// can replace it when the compilers we support have it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace xpu {

using fmt::format_string;

// Format("{} of {}", a, b)
template <typename... Args>
std::string Format(format_string<Args...> pattern, Args&&... args) {
  return fmt::format(pattern, std::forward<Args>(args)...);
}

// Appends to `out`: no temporary string, for the writers of large views.
template <typename... Args>
void AppendFormat(std::string& out, format_string<Args...> pattern, Args&&... args) {
  fmt::format_to(std::back_inserter(out), pattern, std::forward<Args>(args)...);
}

// "ab12..." of raw bytes.
inline std::string ToHex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace xpu
