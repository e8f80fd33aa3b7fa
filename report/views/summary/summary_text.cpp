#include "report/views/summary/summary_text.h"

#include <algorithm>
#include <map>

#include "format/base/text.h"
#include "report/analysis/kernel_name.h"

namespace xpu {
namespace {

constexpr size_t kLabelWidth = 10;

// Where the word that starts at `start` ends: at a space outside quotes.
size_t EndOfWord(std::string_view command, size_t start) {
  bool is_quoted = false;
  for (size_t i = start; i < command.size(); ++i) {
    if (command[i] == ' ' && !is_quoted) return i;
    if (command[i] == '\'') is_quoted = !is_quoted;
    if (command[i] == '\\' && !is_quoted) ++i;
  }
  return command.size();
}

// The pieces that a line may be broken between: words, but an option together with its value.
std::vector<std::string_view> CommandPieces(std::string_view command) {
  std::vector<std::string_view> pieces;
  bool after_option = false;
  for (size_t start = 0; start < command.size();) {
    const size_t end = EndOfWord(command, start);
    const std::string_view word = command.substr(start, end - start);
    const bool is_option = word.starts_with("--") || word == "-o";
    if (after_option && !is_option) {
      const auto at = static_cast<size_t>(pieces.back().data() - command.data());
      pieces.back() = command.substr(at, end - at);
    } else {
      pieces.push_back(word);
    }
    after_option = is_option;
    start = end + 1;
  }
  return pieces;
}

FittingNames WithoutWholeOfDistinct(FittingNames names) {
  std::map<std::string, size_t> seen;
  for (const auto& [fitting, whole] : names) ++seen[fitting];
  for (auto& [fitting, whole] : names) {
    if (seen[fitting] == 1) whole.clear();
  }
  return names;
}

}  // namespace

ShownText SummaryText::Label(std::string_view label) const {
  return colors_.Faint(Format("{:<{}}", label, kLabelWidth));
}

ShownText SummaryText::Toned(std::string_view text, Tone tone) const {
  switch (tone) {
    case Tone::kPlain:
      break;
    case Tone::kGood:
      return colors_.Good(text);
    case Tone::kWarning:
      return colors_.Warning(text);
    case Tone::kBad:
      return colors_.Bad(text);
  }
  return ShownText::Line(text);
}

void SummaryText::Line(std::string_view label, std::string_view text, Tone tone) {
  if (!HasRoom()) return;
  output_.Write(
      ShownText::Of("{}{}\n", Label(label), Toned(ToWidth(text, kWidth - kLabelWidth), tone)));
}

void SummaryText::Paragraph(std::string_view label, std::string_view text) {
  Wrap(Label(label), std::string(kLabelWidth, ' '), text);
}

void SummaryText::Wrapped(std::string_view first, std::string_view indent, std::string_view text) {
  Wrap(ShownText::Line(first), indent, text);
}

void SummaryText::Wrap(const ShownText& first, std::string_view indent, std::string_view text) {
  if (!HasRoom()) return;
  const size_t width = kWidth - indent.size();
  ShownText begin = first;
  std::string line;
  size_t used = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    if (text.substr(end).starts_with(" %")) end = std::min(text.find(' ', end + 1), text.size());
    const std::string word = ToWidth(text.substr(at, end - at), width);
    if (used > 0 && used + 1 + WidthOf(word) > width) {
      output_.Write(ShownText::Of("{}{}\n", begin, line));
      begin = ShownText::Line(indent);
      line.clear();
      used = 0;
    }
    if (used > 0) line += ' ';
    line += word;
    used += (used > 0 ? 1 : 0) + WidthOf(word);
    at = end + 1;
  }
  output_.Write(ShownText::Of("{}{}\n", begin, line));
}

void SummaryText::Heading(std::string_view title, std::string_view rest) {
  EndRows();
  output_.Write(ShownText::Of("\n{}{}\n", colors_.Title(title), rest));
}

void SummaryText::Names(std::string_view names) {
  EndRows();
  output_.Write(ShownText::Of("{}\n", colors_.Faint(names)));
}

void SummaryText::EndRows() {
  const size_t rows = std::exchange(rows_, 0);
  if (rows <= kMostRows) return;
  output_.Write(ShownText::Of("  ... {} more\n", WithThousands(rows - kMostRows)));
}

void SummaryText::Row(const std::string& numbers, std::string_view name) {
  if (!HasRoom()) return;
  output_.Write(ShownText::Of("{}{}\n", numbers, ToWidth(name, WidthAfter(numbers))));
}

void SummaryText::Command(std::string_view command) {
  std::string indent(4, ' ');
  std::string line;
  const auto end_line = [&](Literal end) {
    output_.Write(ShownText::Of("{}{}", indent, colors_.Gpu(line)));
    output_.Write(end);
    indent.assign(8, ' ');
    line.clear();
  };
  for (const std::string_view word : CommandPieces(command)) {
    constexpr size_t kContinued = 2;  // " \"
    const bool fits = indent.size() + WidthOf(line) + 1 + WidthOf(word) + kContinued <= kWidth;
    if (!line.empty() && !fits) end_line(" \\\n");
    if (!line.empty()) line += ' ';
    line += word;
  }
  end_line("\n");
}

FittingNames FitTexts(const std::vector<std::string>& names, size_t width) {
  FittingNames fitting;
  for (const std::string& name : names) fitting.emplace_back(ToWidth(name, width), name);
  return WithoutWholeOfDistinct(std::move(fitting));
}

FittingNames FitKernels(const std::vector<std::string>& names, size_t width) {
  std::map<std::string, std::string> distinct = DistinctKernelNames(names, width);
  FittingNames fitting;
  for (const std::string& name : names) {
    fitting.emplace_back(ToWidth(CompactKernelName(name, width), width), distinct[name]);
  }
  return WithoutWholeOfDistinct(std::move(fitting));
}

}  // namespace xpu
