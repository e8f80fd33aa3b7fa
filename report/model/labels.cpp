#include "report/model/labels.h"

#include "format/base/quote.h"

namespace xpu {

std::vector<Label> LabelsOf(std::string_view settings) {
  constexpr std::string_view kOption = "--label";
  std::vector<Label> labels;
  const auto add = [&](std::string_view text) {
    const size_t end = text.find('=');
    if (end == 0 || end == std::string_view::npos) return;
    labels.push_back({std::string(text.substr(0, end)), std::string(text.substr(end + 1))});
  };
  const std::vector<std::string> words = WordsOfShell(settings);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == kOption) {
      if (++i < words.size()) add(words[i]);
    } else if (word.starts_with(kOption) && word[kOption.size()] == '=') {
      add(word.substr(kOption.size() + 1));
    }
  }
  return labels;
}

}  // namespace xpu
