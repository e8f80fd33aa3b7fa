#include "format/fused_calls.h"

#include <algorithm>
#include <utility>

namespace xpu {
namespace {

constexpr std::string_view kNodes = "Source Nodes: [";
constexpr std::string_view kOperators = "Original ATen: [";
// Between the comment and its call: which stream, checks of buffers.
constexpr uint32_t kMostLinesBetween = 8;
// Of one call. Larger ones are no help to anybody, and the file is the program's.
constexpr size_t kMostNames = 64;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

std::string_view WithoutIndent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

// What stands between the brackets after `head`.
std::vector<std::string_view> NamesAfter(std::string_view line, std::string_view head) {
  std::vector<std::string_view> names;
  size_t at = line.find(head);
  if (at == std::string_view::npos) return names;
  at += head.size();
  const size_t end = std::min(line.find(']', at), line.size());
  while (at < end && names.size() < kMostNames) {
    const size_t comma = std::min(line.find(", ", at), end);
    if (comma > at) names.push_back(line.substr(at, comma - at));
    at = comma + 2;
  }
  return names;
}

bool IsCall(std::string_view line) {
  return !line.starts_with('#') && (line.find(".run(") != std::string_view::npos ||
                                    line.find("extern_kernels.") != std::string_view::npos ||
                                    line.find("torch.ops.") != std::string_view::npos);
}

}  // namespace

std::vector<FusedCall> FusedCallsOf(std::string_view text, uint32_t first_line) {
  std::vector<FusedCall> calls;
  if (text.find(kNodes) == std::string_view::npos) return calls;
  FusedCall open;
  uint32_t number = first_line;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string_view content = WithoutIndent(line);
    begin = end + 1;
    // Those at the edge of the file stand above the kernels that it defines.
    const bool is_inside = content.size() < line.size();
    if (is_inside && content.starts_with('#') && content.find(kNodes) != std::string_view::npos) {
      open = {.first_line = number + 1,
              .nodes = NamesAfter(content, kNodes),
              .operators = NamesAfter(content, kOperators)};
      continue;
    }
    if (open.first_line == 0) continue;
    if (number - open.first_line >= kMostLinesBetween) open = {};
    if (open.first_line == 0 || !IsCall(content)) continue;
    open.last_line = number;
    calls.push_back(std::exchange(open, {}));
  }
  return calls;
}

std::string_view VariableOf(std::string_view node) {
  const size_t digits = node.find_last_not_of("0123456789");
  const bool has_number = digits != std::string_view::npos && digits > 0 &&
                          digits + 1 < node.size() && node[digits] == '_';
  return has_number ? node.substr(0, digits) : node;
}

std::string_view AssignedVariable(std::string_view line) {
  const std::string_view content = WithoutIndent(line);
  size_t end = 0;
  while (end < content.size() && IsNameCharacter(content[end])) ++end;
  if (end == 0 || content.size() == line.size()) return {};
  std::string_view rest = WithoutIndent(content.substr(end));
  if (rest.starts_with(':')) {
    const size_t equals = rest.find('=');
    rest = rest.substr(std::min(equals, rest.size()));
  }
  constexpr std::string_view kInPlace = "+-*/%@&|^";
  if (!rest.empty() && kInPlace.find(rest.front()) != std::string_view::npos) {
    rest.remove_prefix(1);
    if (!rest.starts_with('=')) return {};
  }
  const bool is_assignment = rest.starts_with('=') && !rest.starts_with("==");
  return is_assignment ? content.substr(0, end) : std::string_view();
}

}  // namespace xpu
