// Numbers in texts of the command line and of the kernel.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace xpu {

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
