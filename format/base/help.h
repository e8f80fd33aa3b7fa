// `--help GROUP`: what there is no room for in `--help`, which fits a screen.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "format/base/text.h"

namespace xpu {

// A few options that belong together. The text has one paragraph for each: a line that begins with
// its names, and more lines that are indented.
struct HelpGroup {
  std::string_view name;
  std::string_view title;
  std::string_view text;
};

inline std::string HelpOfGroups(std::span<const HelpGroup> groups) {
  std::string text;
  for (const HelpGroup& group : groups) {
    AppendFormat(text, "{}{} (--help {})\n{}", text.empty() ? "" : "\n", group.title, group.name,
                 group.text);
  }
  return text;
}

// GROUP of a command line that asks for help; empty: it names none.
inline std::string_view HelpTopic(int argc, const char* const* argv) {
  constexpr std::string_view kWithValue = "--help=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kWithValue)) return word.substr(kWithValue.size());
    if (word != "-h" && word != "--help") continue;
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    return next.starts_with('-') ? std::string_view() : next;
  }
  return {};
}

// Without a topic `overview`.
inline Result<std::string> HelpOn(std::string_view topic, std::string_view overview,
                                  std::span<const HelpGroup> groups) {
  if (topic.empty()) return std::string(overview);
  if (topic == "all") return HelpOfGroups(groups);
  std::string names;
  for (const HelpGroup& group : groups) {
    if (group.name == topic) return HelpOfGroups({&group, 1});
    AppendFormat(names, "{}, ", group.name);
  }
  return Error{ErrorKind::kUsage, Format("--help: unknown group '{}'", topic),
               Format("groups: {}all", names)};
}

}  // namespace xpu
