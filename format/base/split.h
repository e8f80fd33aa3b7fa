// Texts in parts.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace xpu {

// The parts of `text` between characters of `separators`, without empty ones.
inline std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace xpu
