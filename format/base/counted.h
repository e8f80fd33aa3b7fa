// Numbers in sentences: "1 stack", "2 stacks".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/text.h"

namespace xpu {

// "1 stack", "12 stacks".
inline std::string Counted(uint64_t count, std::string_view one, std::string_view more) {
  return Format("{} {}", count, count == 1 ? one : more);
}

// A sentence about `count` things: of each "{one|more}" in it what fits. Only for texts of ours:
// what comes from a file may have braces.
inline std::string ForCount(uint64_t count, std::string_view sentence) {
  std::string text;
  while (!sentence.empty()) {
    const size_t open = sentence.find('{');
    const size_t bar = sentence.find('|', open == std::string_view::npos ? sentence.size() : open);
    const size_t close = sentence.find('}', bar == std::string_view::npos ? sentence.size() : bar);
    if (close == std::string_view::npos) break;
    text += sentence.substr(0, open);
    text += count == 1 ? sentence.substr(open + 1, bar - open - 1)
                       : sentence.substr(bar + 1, close - bar - 1);
    sentence.remove_prefix(close + 1);
  }
  text += sentence;
  return text;
}

}  // namespace xpu
