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

// Of a list that an option takes, the items between commas, empty ones too.
inline std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> items;
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    items.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  items.push_back(text);
  return items;
}

// Calls `take` with each line, without its line feed, also with empty ones.
template <typename Take>
void ForEachLine(std::string_view text, Take&& take) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    take(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace xpu
