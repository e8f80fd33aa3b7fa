#include "format/fused_calls.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "format/base/split.h"

namespace xpu {
namespace {

constexpr std::string_view kNodes = "Source Nodes: [";
constexpr std::string_view kOperators = "Original ATen: [";
// Between the comment and its call: which stream, checks of buffers.
constexpr uint32_t kMostLinesBetween = 8;
// Longer lists and names are no help to anybody, and the file is the program's.
constexpr size_t kMostNames = 64;
constexpr size_t kLongestName = 64;

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
    const std::string_view name = line.substr(at, comma - at);
    const bool is_name = std::all_of(name.begin(), name.end(),
                                     [](char c) { return c == '.' || IsNameCharacter(c); });
    if (is_name && !name.empty() && name.size() <= kLongestName) names.push_back(name);
    at = comma + 2;
  }
  return names;
}

bool IsCall(std::string_view line) {
  return !line.starts_with('#') && (line.find(".run(") != std::string_view::npos ||
                                    line.find("extern_kernels.") != std::string_view::npos ||
                                    line.find("torch.ops.") != std::string_view::npos);
}

// ---- Python -----------------------------------------------------------------------------------

struct Token {
  std::string_view text;  // a name or number, or an operator
  uint32_t line = 0;
  uint32_t depth = 0;  // of brackets around it
  bool IsName() const {
    const bool is_number = text.front() >= '0' && text.front() <= '9';
    return IsNameCharacter(text.front()) && !is_number && text != "as" && text != "import";
  }
};

// Statements of a Python file, as far as assignments are to be found in them.
class Statements {
 public:
  explicit Statements(std::string_view text) : text_(text) {}

  // False: there is no other one.
  bool Next(std::vector<Token>& tokens, bool& is_indented) {
    tokens.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_begin_ = ++at_;
        if (depth_ == 0 && !tokens.empty()) return true;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
        ++line_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == ';' && depth_ == 0) {
        ++at_;
        if (!tokens.empty()) return true;
      } else if (c == '"' || c == '\'') {
        if (!SkipString(c)) return false;
      } else {
        if (tokens.empty()) is_indented = at_ > line_begin_;
        AddToken(tokens);
      }
    }
    is_whole_ = depth_ == 0;
    return !tokens.empty();
  }
  bool is_whole() const { return is_whole_; }

 private:
  bool SkipString(char quote) {
    const std::string_view three = text_.substr(at_, 3);
    const bool is_long = three.size() == 3 && three[1] == quote && three[2] == quote;
    at_ += is_long ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '\\') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++line_;
        ++at_;
      } else if (text_[at_] == '\n' && !is_long) {
        return false;
      } else if (text_[at_] == quote && (!is_long || text_.substr(at_, 3) == three)) {
        at_ += is_long ? 3 : 1;
        return true;
      }
    }
    return false;
  }

  void AddToken(std::vector<Token>& tokens) {
    size_t size = 1;
    if (IsNameCharacter(text_[at_])) {
      while (at_ + size < text_.size() && IsNameCharacter(text_[at_ + size])) ++size;
    } else {
      constexpr std::array<std::string_view, 22> kOperatorTexts = {
          "**=", "//=", ">>=", "<<=", "==", "!=", "<=", ">=", ":=", "->", "+=",
          "-=",  "*=",  "/=",  "%=",  "@=", "&=", "|=", "^=", "**", "//", "..."};
      for (const std::string_view known : kOperatorTexts) {
        if (text_.substr(at_).starts_with(known)) {
          size = known.size();
          break;
        }
      }
    }
    const char first = text_[at_];
    if ((first == ')' || first == ']' || first == '}') && depth_ > 0) --depth_;
    const bool is_prefix = at_ + size < text_.size() && size <= 2 && IsNameCharacter(first) &&
                           (text_[at_ + size] == '"' || text_[at_ + size] == '\'');
    if (!is_prefix) tokens.push_back({text_.substr(at_, size), line_, depth_});
    if (first == '(' || first == '[' || first == '{') ++depth_;
    at_ += size;
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  uint32_t line_ = 1;
  uint32_t depth_ = 0;
  bool is_whole_ = false;
};

class Binder {
 public:
  void Add(std::span<const Token> tokens) {
    for (size_t i = 1; i < tokens.size(); ++i) {
      if (tokens[i].text == ":=") Bind(tokens[i - 1], false);
      if (tokens[i - 1].text == "as") Bind(tokens[i], false);
    }
    // "if a: b = c": what follows is a statement too.
    while (!tokens.empty() && IsCompound(tokens[0].text)) tokens = AfterHead(tokens);
    if (tokens.empty()) return;
    if (tokens[0].text == "import" || tokens[0].text == "from") return BindAll(tokens.subspan(1));
    AddAssignment(tokens);
  }

  std::unordered_map<std::string_view, Binding> Take() { return std::move(bindings_); }

 private:
  static bool IsCompound(std::string_view word) {
    constexpr std::array<std::string_view, 12> kWords = {"if",    "elif",    "else", "for",
                                                         "while", "with",    "try",  "except",
                                                         "async", "finally", "def",  "class"};
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
  }
  static size_t FindTop(std::span<const Token> tokens, std::string_view text) {
    size_t i = 0;
    while (i < tokens.size() && (tokens[i].depth != 0 || tokens[i].text != text)) ++i;
    return i;
  }
  static bool IsAssignment(const Token& token) {
    constexpr std::array<std::string_view, 5> kOthers = {"==", "!=", "<=", ">=", ":="};
    return token.depth == 0 && token.text.ends_with('=') &&
           std::find(kOthers.begin(), kOthers.end(), token.text) == kOthers.end();
  }

  void Bind(const Token& token, bool is_plain) {
    if (!token.IsName()) return;
    const auto [known, is_new] = bindings_.try_emplace(token.text, Binding{token.line, is_plain});
    if (!is_new) known->second.is_sole = false;
  }
  // Names that stand alone: "a" and "b" of "a, (b, c.d, e[0])". A name within an index counts too,
  // which at most hides a line.
  void BindAll(std::span<const Token> tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool is_part = i > 0 && tokens[i - 1].text == ".";
      const std::string_view after = i + 1 < tokens.size() ? tokens[i + 1].text : "";
      if (!is_part && after != "." && after != "[" && after != "(") Bind(tokens[i], false);
    }
  }
  std::span<const Token> AfterHead(std::span<const Token> tokens) {
    const std::span<const Token> head = tokens.first(FindTop(tokens, ":"));
    const bool is_async = head.size() > 1 && head[0].text == "async";
    const std::span<const Token> loop = is_async ? head.subspan(1) : head;
    if (!loop.empty() && loop[0].text == "for") {
      BindAll(loop.subspan(1).first(FindTop(loop.subspan(1), "in")));
    }
    return tokens.subspan(std::min(head.size() + 1, tokens.size()));
  }
  void AddAssignment(std::span<const Token> tokens) {
    const auto count = std::count_if(tokens.begin(), tokens.end(), IsAssignment);
    size_t begin = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!IsAssignment(tokens[i])) continue;
      const std::span<const Token> target = tokens.subspan(begin, i - begin);
      begin = i + 1;
      const bool is_annotated = target.size() > 1 && target[1].depth == 0 && target[1].text == ":";
      if (target.size() == 1 || is_annotated) {
        Bind(target[0], count == 1);  // "a = b = c" names neither
      } else {
        BindAll(target);
      }
    }
  }

  std::unordered_map<std::string_view, Binding> bindings_;
};

}  // namespace

std::vector<FusedCall> FusedCallsOf(std::string_view text, uint32_t first_line) {
  std::vector<FusedCall> calls;
  if (text.find(kNodes) == std::string_view::npos) return calls;
  FusedCall open;
  uint32_t next = first_line;
  ForEachLine(text, [&](std::string_view line) {
    const uint32_t number = next++;
    const std::string_view content = WithoutIndent(line);
    // Those at the edge of the file stand above the kernels that it defines.
    const bool is_inside = content.size() < line.size();
    if (is_inside && content.starts_with('#') && content.find(kNodes) != std::string_view::npos) {
      open = {.first_line = number + 1,
              .nodes = NamesAfter(content, kNodes),
              .operators = NamesAfter(content, kOperators)};
      return;
    }
    if (open.first_line == 0) return;
    if (number - open.first_line >= kMostLinesBetween) open = {};
    if (open.first_line == 0 || !IsCall(content)) return;
    open.last_line = number;
    calls.push_back(std::exchange(open, {}));
  });
  return calls;
}

std::unordered_map<std::string_view, Binding> BindingsOf(std::string_view text) {
  Statements statements(text);
  Binder binder;
  std::vector<Token> tokens;
  bool is_indented = false;
  while (statements.Next(tokens, is_indented)) {
    // What is not in a function is not compiled.
    if (is_indented) binder.Add(tokens);
  }
  if (!statements.is_whole()) return {};
  return binder.Take();
}

bool IsPyTorchFile(std::string_view path) {
  return path.starts_with('<') || path.find("/site-packages/torch/") != std::string_view::npos ||
         path.find("/dist-packages/torch/") != std::string_view::npos;
}

}  // namespace xpu
