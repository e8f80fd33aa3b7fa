#include "format/base/text.h"
#include "man/completion/completion.h"

namespace xpu {
namespace {

// `text` with a backslash before each of `special`, for a word in single quotes.
std::string Escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Action(const CompletedOption& completed) {
  const std::string& value = completed.option.value;
  if (!completed.choices.empty()) {
    std::string words;
    for (const std::string& choice : completed.choices) words += " " + Escaped(choice, ":");
    return completed.is_list ? "_sequence compadd -" + words : "(" + words.substr(1) + ")";
  }
  if (value == "FILE") return "_files";
  if (value.ends_with("DIR")) return "_files -/";
  if (value == "CAPTURE") return "_files -g \"*.xpu\"";
  if (value == "USER") return "_users";
  if (value == "PID,...") return "_sequence _pids";
  return " ";  // a number, a name: nothing is known of it
}

// ":what:action", "::what:action" where the option does without one, or nothing.
std::string Value(const CompletedOption& completed) {
  const std::string& value = completed.option.value;
  if (value.empty()) return {};
  const bool is_named = completed.choices.empty() && !value.ends_with("DIR");
  return Format("{}{}:{}",
                completed.option.needs_value ? ":" : "::", is_named ? Escaped(value, ":") : "value",
                Action(completed));
}

// -o+ and --output=: the value is the rest of the word or the next one.
std::string NameWithValue(const std::string& name) {
  return name + (name.starts_with("--") ? "=" : "+");
}

std::string Specification(const CompletedOption& completed) {
  const CommandLineOption& option = completed.option;
  std::string alternatives;
  std::string excluded;
  for (const std::string& name : option.names) {
    alternatives += alternatives.empty() ? "" : ",";
    alternatives += option.value.empty() ? name : NameWithValue(name);
    excluded += (excluded.empty() ? "" : " ") + name;
  }
  if (option.names.size() > 1) alternatives = "{" + alternatives + "}";
  const std::string before = option.repeats ? "*" : "(" + excluded + ")";
  return Format("'{}'{}'[{}]{}'", before, alternatives, Escaped(completed.about, "[]:\\"),
                Value(completed));
}

}  // namespace

std::string ZshCompletion(const CompletedProgram& program) {
  std::string text =
      Format("#compdef {}\n# Made from its options.\n_arguments -S \\\n", program.name);
  for (const CompletedOption& completed : program.options) {
    if (!completed.option.names.empty()) text += "  " + Specification(completed) + " \\\n";
  }
  text += program.runs_program ? "  '(-)1:program: _command_names -e' '*::arguments: _normal'\n"
                               : "  '*:capture:_files -g \"*.xpu\"'\n";
  return text;
}

}  // namespace xpu
