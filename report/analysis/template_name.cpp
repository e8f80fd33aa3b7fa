#include "report/analysis/template_name.h"

namespace xpu {
namespace {

constexpr int kMaxDepth = 64;

// Whether the '<' or '>' at `at` is a bracket and not part of an operator.
bool IsAngle(std::string_view name, size_t at) {
  constexpr std::string_view kOperator = "operator";
  if (name[at] == '>' && at > 0 && name[at - 1] == '-') return false;
  size_t first = at;
  const size_t least = at < 3 ? 0 : at - 3;  // no operator is longer
  while (first > least && (name[first - 1] == '<' || name[first - 1] == '>')) --first;
  // "operator<<" and then, perhaps, arguments: "operator<< <int>" has a space before them.
  return !name.substr(0, first).ends_with(kOperator);
}

char CloserOf(std::string_view name, size_t at) {
  switch (name[at]) {
    case '(':
      return ')';
    case '{':
      return '}';
    case '[':
      return ']';
    case '<':
      return IsAngle(name, at) ? '>' : '\0';
    default:
      return '\0';
  }
}

bool Closes(std::string_view name, size_t at) {
  const char c = name[at];
  return c == ')' || c == '}' || c == ']' || (c == '>' && IsAngle(name, at));
}

TemplateName ParseAt(std::string_view name, int depth);

void AddArguments(std::string_view list, int depth, std::vector<TemplateName>& arguments) {
  size_t begin = 0;
  const auto add = [&](size_t end) {
    std::string_view text = list.substr(begin, end - begin);
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    arguments.push_back(ParseAt(text, depth));
  };
  for (size_t at = 0; at < list.size(); ++at) {
    if (list[at] == ',') {
      add(at);
      begin = at + 1;
    } else if (CloserOf(list, at) != '\0') {
      const size_t end = ClosingBracket(list, at);
      if (end == std::string_view::npos) break;
      at = end;
    }
  }
  if (begin < list.size()) add(list.size());
}

TemplateName ParseAt(std::string_view name, int depth) {
  TemplateName parsed;
  parsed.parts.emplace_back();
  for (size_t at = 0; at < name.size(); ++at) {
    const char closer = CloserOf(name, at);
    if (closer == '\0') {
      parsed.parts.back().text += name[at];
      continue;
    }
    const size_t end = ClosingBracket(name, at);
    if (end == std::string_view::npos) {
      // A damaged name. Not tried at each of its brackets, which would take the square of its size.
      parsed.parts.back().text += name.substr(at);
      break;
    }
    if (closer != '>' || depth >= kMaxDepth) {
      parsed.parts.back().text += name.substr(at, end + 1 - at);
      at = end;
    } else {
      TemplateName::Part& part = parsed.parts.back();
      part.has_list = true;
      AddArguments(name.substr(at + 1, end - at - 1), depth + 1, part.arguments);
      parsed.parts.emplace_back();
      at = end;
    }
  }
  if (parsed.parts.size() > 1 && parsed.parts.back().text.empty()) parsed.parts.pop_back();
  return parsed;
}

}  // namespace

size_t ClosingBracket(std::string_view name, size_t open) {
  if (CloserOf(name, open) == '\0') return std::string_view::npos;
  std::string closers;
  for (size_t at = open; at < name.size(); ++at) {
    if (const char closer = CloserOf(name, at); closer != '\0') {
      closers += closer;
    } else if (Closes(name, at)) {
      // Not within parentheses: "(a > b)".
      if (name[at] == '>' && closers.back() != '>') continue;
      while (closers.back() == '>' && name[at] != '>') {  // "(a < b)"
        closers.pop_back();
        if (closers.empty()) return std::string_view::npos;
      }
      if (closers.back() != name[at]) return std::string_view::npos;
      closers.pop_back();
      if (closers.empty()) return at;
    }
  }
  return std::string_view::npos;
}

TemplateName TemplateName::Parse(std::string_view name) { return ParseAt(name, 0); }

std::string TemplateName::Text() const {
  std::string text;
  for (const Part& part : parts) {
    text += part.text;
    if (!part.has_list) continue;
    if (text.ends_with('<')) text += ' ';  // "operator<< <int>"
    text += '<';
    std::string_view separator;
    for (const TemplateName& argument : part.arguments) {
      text += separator;
      text += argument.Text();
      separator = ", ";
    }
    text += text.ends_with('>') ? " >" : ">";
  }
  return text;
}

}  // namespace xpu
