// Numbers in texts: of the command line, of the kernel, in mangled names.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace xpu {

// Whatever the locale.
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLowerHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

// nullopt: the text is not a number of that type and nothing else.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace xpu
