#include "report/tree/kernel_name.h"

#include <algorithm>
#include <vector>

#include "report/text.h"

namespace xpu {
namespace {

// Names that no compiler makes: longer ones are cut without a look at what is in them, deeper ones
// become "..." from there on. Each level of brackets costs a pass over the name.
constexpr size_t kMaxParsedBytes = size_t{16} << 10;
constexpr int kMaxLevels = 64;
constexpr size_t kMaxOperator = 4;  // "->*", "<<=", "<=>"

// Whether the '<' or '>' at `at` is a bracket and not part of an operator.
bool IsBracket(std::string_view name, size_t at) {
  constexpr std::string_view kOperator = "operator";
  if (name[at] == '>' && at > 0 && name[at - 1] == '-') return false;
  size_t first = at;
  while (first > 0 && at - first < kMaxOperator &&
         (name[first - 1] == '<' || name[first - 1] == '>')) {
    --first;
  }
  // "operator<<" and then, perhaps, arguments: "operator<< <int>" has a space before them.
  return !name.substr(0, first).ends_with(kOperator);
}

// How deep each character lies in template arguments, brackets counted to the outside.
std::vector<int> DepthsOf(std::string_view name) {
  std::vector<int> depths(name.size());
  int depth = 0;
  for (size_t at = 0; at < name.size(); ++at) {
    const bool is_bracket = (name[at] == '<' || name[at] == '>') && IsBracket(name, at);
    if (is_bracket && name[at] == '>') depth = std::max(0, depth - 1);
    depths[at] = depth;
    if (is_bracket && name[at] == '<') ++depth;
  }
  return depths;
}

// "f<A<int> >" of "f<ns::A<int> >".
std::string WithoutInnerNamespaces(std::string_view name) {
  const std::vector<int> depths = DepthsOf(name);
  std::string out;
  std::vector<size_t> starts = {0};  // of the qualified name at each level of brackets, in `out`
  for (size_t at = 0; at < name.size(); ++at) {
    const char c = name[at];
    if (depths[at] > 0 && name.substr(at, 2) == "::") {
      out.resize(starts.back());
      ++at;
      continue;
    }
    out += c;
    const bool is_bracket = (c == '<' || c == '>') && IsBracket(name, at);
    if (c == '(' || c == '{' || c == '[' || (is_bracket && c == '<')) {
      starts.push_back(out.size());
    } else if (c == ')' || c == '}' || c == ']' || (is_bracket && c == '>')) {
      if (starts.size() > 1) starts.pop_back();
    } else if (std::string_view(" ,*&!-+=").find(c) != std::string_view::npos) {
      starts.back() = out.size();
    }
  }
  return out;
}

// What lies deeper than `limit` brackets becomes "...".
std::string Collapsed(std::string_view name, const std::vector<int>& depths, int limit) {
  std::string out;
  for (size_t at = 0; at < name.size(); ++at) {
    if (depths[at] <= limit) {
      out += name[at];
    } else if (at == 0 || depths[at - 1] <= limit) {
      out += "...";
    }
  }
  return out;
}

}  // namespace

std::string_view ShortKernelName(std::string_view demangled) {
  std::string_view name = demangled;
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (!name.ends_with(')')) return name;
  // The parenthesis that belongs to the last one opens the parameters.
  int depth = 0;
  for (size_t at = name.size(); at > 0; --at) {
    if (name[at - 1] == ')') ++depth;
    if (name[at - 1] == '(' && --depth == 0) return at > 1 ? name.substr(0, at - 1) : name;
  }
  return name;
}

std::string CompactKernelName(std::string_view demangled, size_t width) {
  std::string name(ShortKernelName(demangled));
  if (name.size() <= width) return name;
  if (name.size() > kMaxParsedBytes) return ToWidth(name, width);
  name = WithoutInnerNamespaces(name);
  const std::vector<int> depths = DepthsOf(name);
  const int deepest = depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
  std::string shorter = name;
  for (int limit = std::min(deepest, kMaxLevels) - 1; limit >= 0 && shorter.size() > width;
       --limit) {
    shorter = Collapsed(name, depths, limit);
  }
  return ToWidth(shorter, width);
}

}  // namespace xpu
