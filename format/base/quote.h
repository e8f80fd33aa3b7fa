// Words as one line that a shell reads back as the same words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// `word` as it is where every character is harmless, else in single quotes.
std::string QuoteForShell(std::string_view word);

// The quoted words with a space between them.
std::string QuoteForShell(std::span<const std::string> words);

// The words of a line as QuoteForShell makes it. Quotes that do not end, end with the line.
std::vector<std::string> WordsOfShell(std::string_view line);

}  // namespace xpu
