#include "format/base/quote.h"

#include <algorithm>

namespace xpu {
namespace {

bool IsHarmless(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:,+@%=").find(c) != std::string_view::npos;
}

}  // namespace

std::string QuoteForShell(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsHarmless)) return std::string(word);
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string QuoteForShell(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += QuoteForShell(word);
  }
  return line;
}

std::vector<std::string> WordsOfShell(std::string_view line) {
  std::vector<std::string> words;
  bool is_open = false;
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ' && !is_quoted) {
      is_open = false;
      continue;
    }
    if (!is_open) words.emplace_back();
    is_open = true;
    if (line[i] == '\'') {
      is_quoted = !is_quoted;
    } else if (line[i] == '\\' && !is_quoted && i + 1 < line.size()) {
      words.back() += line[++i];
    } else {
      words.back() += line[i];
    }
  }
  return words;
}

}  // namespace xpu
