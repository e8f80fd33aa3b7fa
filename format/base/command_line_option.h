// What a program's command line takes, for the completion of shells (man/completion), and
// what is said of a mistake in it.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/help.h"
#include "format/base/nearest_names.h"
#include "format/base/result.h"
#include "format/base/text.h"

namespace xpu {

struct CommandLineOption {
  std::vector<std::string> names;  // "-o", "--output"; none: it stands for the other words
  // What a value is: "FILE", "DIR", "{gpu,cpu}", "{cycles,page-faults},...". Empty: takes none.
  std::string value;
  bool repeats = false;
  bool needs_value = true;  // where it takes one
};

// What is wrong when an option that takes one value was given several: the parser's own words are
// of numbers alone. nullopt: none was.
template <typename App>
std::optional<Error> RepeatedOption(const App& app) {
  for (const auto* option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (option->get_items_expected_max() != 1 || values.size() < 2) continue;
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : " and ") + value;
    return Error{ErrorKind::kUsage, option->get_name() + ": given twice",
                 Format("keep only one of {}", list)};
  }
  return std::nullopt;
}

// What is wrong when the parser says `what`: of an option without its value it has numbers and a
// type, of one that takes none the value.
template <typename App>
Error ParseMistake(const App& app, std::string_view what, std::string hint) {
  if (auto twice = RepeatedOption(app)) return *std::move(twice);
  std::string text(what);
  if (what.ends_with("missing")) {
    text = Format("{} needs a value", what.substr(0, what.find(':')));
  }
  // "Could not convert: --period = x", and of options that take no value.
  constexpr std::string_view kNotConverted = "Could not convert: ";
  if (what.starts_with(kNotConverted)) {
    const std::string_view rest = what.substr(kNotConverted.size());
    const size_t equals = std::min(rest.find(" = "), rest.size());
    const auto* option = app.get_option_no_throw(std::string(rest.substr(0, equals)));
    const bool takes_none = option != nullptr && option->get_items_expected_max() == 0;
    const std::string_view value = rest.substr(std::min(equals + 3, rest.size()));
    text = takes_none ? Format("{} takes no value", rest.substr(0, equals))
                      : Format("{}: '{}' is no valid value", rest.substr(0, equals), value);
  }
  return Error{ErrorKind::kUsage, std::move(text), std::move(hint)};
}

// An option of another profiler that people type here, and what does the same.
struct OtherToolOption {
  std::string_view option;
  std::string_view hint;
};

// `word` may have a value after a =.
template <typename App>
Error UnknownOption(const App& app, std::string_view word, std::string hint,
                    std::span<const OtherToolOption> habits = {}) {
  const std::string_view name = word.substr(0, word.find('='));
  for (const OtherToolOption& habit : habits) {
    if (habit.option != name) continue;
    return Error{ErrorKind::kUsage, Format("unknown option: {}", name), std::string(habit.hint)};
  }
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back(known);
  }
  const bool is_long = name.starts_with("--") && !name.starts_with("---");
  const std::string near = is_long ? NearestNames(names, name.substr(2), "--") : std::string();
  if (!near.empty()) hint = Format("did you mean {}?", near);
  return Error{ErrorKind::kUsage, Format("unknown option: {}", name), std::move(hint)};
}

// `App` is CLI::App, which only the files that parse know.
template <typename App>
std::vector<CommandLineOption> CommandLineOptionsOf(const App& app) {
  std::vector<CommandLineOption> options;
  for (const auto* parsed : app.get_options()) {
    CommandLineOption option;
    for (const std::string& name : parsed->get_snames()) option.names.push_back("-" + name);
    for (const std::string& name : parsed->get_lnames()) option.names.push_back("--" + name);
    if (parsed->get_items_expected_max() > 0) option.value = parsed->get_type_name();
    option.repeats = parsed->get_items_expected_max() > 1;
    options.push_back(std::move(option));
  }
  return options;
}

// The same with the words that may follow --help.
inline std::vector<CommandLineOption> WithHelpGroups(std::vector<CommandLineOption> options,
                                                     std::span<const HelpGroup> groups) {
  for (CommandLineOption& option : options) {
    if (std::find(option.names.begin(), option.names.end(), "--help") == option.names.end()) {
      continue;
    }
    std::string names;
    for (const HelpGroup& group : groups) AppendFormat(names, "{},", group.name);
    option.value = Format("{{{}all}}", names);
    option.needs_value = false;
  }
  return options;
}

}  // namespace xpu
