// Text for each output format. Names come from files and programs: any byte may be in them.
//
// Text for people is a ShownText, text for programs a CsvLine or a JsonWriter (json_writer.h): only
// escaping makes these types. Output takes nothing else, so that no view can forget a field.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/base/terminal_text.h"
#include "format/base/text.h"

namespace xpu {

// A text that was known at compile time, so that nothing of a capture is in it.
struct Literal {
  template <size_t kBytes>
  consteval Literal(const char (&literal)[kBytes])  // NOLINT: stands for the literal
      : text(literal, kBytes - 1) {}
  operator std::string_view() const { return text; }  // NOLINT: it is one
  std::string_view text;
};

class ShownText;
std::string ShownValue(const ShownText& value);
template <typename Value>
auto ShownValue(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    return ForOneLine(value);
  } else {
    return value;
  }
}

// Text that a terminal shows and does not execute.
class ShownText {
 public:
  ShownText() = default;
  // Escapes one line, with ForOneLine.
  static ShownText Line(std::string_view text) { return ShownText(ForOneLine(text)); }
  // Escapes several lines, with ForTerminal: names in them must be on one line each before.
  static ShownText Lines(std::string_view text) { return ShownText(ForTerminal(text)); }
  // Formats `args`, of which each text becomes a Line.
  template <typename... Args>
  static ShownText Of(format_string<decltype(ShownValue(std::declval<const Args&>()))...> pattern,
                      const Args&... args) {
    return ShownText(Format(pattern, ShownValue(args)...));
  }

  const std::string& text() const { return text_; }

 private:
  friend class Colors;   // the escape sequences that we want
  friend class CsvLine;  // its cells are escaped
  explicit ShownText(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

inline std::string ShownValue(const ShownText& value) { return value.text(); }

// A frame of a folded line. flamegraph.pl and similar tools split frames at ';' and the value at
// the last space, and take a number before the value for a second value. So ';' becomes ':', a
// space before a number that ends the name becomes '_'. Control characters as ForOneLine. Never
// empty.
std::string ToFoldedFrame(std::string_view name);

// Appends `text` in double quotes on one line of ASCII: \" \\ \n \t, other bytes that are no
// printable ASCII as \xNN.
void AppendQuoted(std::string& out, std::string_view text);

// A field of a CSV line, quoted where RFC 4180 asks for it. As ForOneLine, and a backslash is
// "\x5c", so that each "\xNN" is a byte of the name.
std::string ToCsvField(std::string_view text);

// A line of a CSV file, cell by cell.
class CsvLine {
 public:
  // Adds a field as ToCsvField makes it, with one ' before what a spreadsheet would run: '=', '@',
  // '+' or '-' before a letter.
  void Text(std::string_view text);
  // Adds a text that is known but may be empty: "" then, since an empty field is an unknown value.
  void KnownText(std::string_view text) { text.empty() ? Add("\"\"") : Text(text); }
  // A number, or nothing.
  void Number(std::string_view number) { Add(ToCsvField(number)); }
  // The line with its end; a new one begins.
  ShownText Take();

 private:
  void Add(const std::string& field);

  std::string line_;
  bool is_first_ = true;
};

// One line, as ForOneLine, of at most `width` characters, cut in the middle with "..": the ends of
// names say more than their middles.
std::string ToWidth(std::string_view text, size_t width);
// "main > [5 frames] > forward > cudaLaunchKernel": of the frames of a path, outermost first, the
// first one and as many of the last ones as `width` holds, but at least the last.
std::string ShortPath(std::span<const std::string> frames, size_t width);
// Characters, not bytes.
size_t WidthOf(std::string_view valid_utf8);

// "1.234 ms", "12.35 s", "1.5 GB" (10^9), "12,345".
std::string HumanDuration(uint64_t ns);
std::string HumanBytes(uint64_t bytes);
std::string WithThousands(uint64_t number);
// Formats a number in text, which may have a fraction.
std::string WithThousands(std::string number);

// 0 of nothing.
inline double ShareOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
inline double PercentOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// "1.162034s", as --time takes it: how long after `start_ns`; 0 before it.
std::string TimeSince(uint64_t start_ns, uint64_t time_ns);

// Integers in a coarser unit whose sum is the rounded exact sum: each value divided by `unit`,
// rounded down, then one more for those with the largest remainders (of equal ones the first) until
// the sum is the exact sum divided by `unit`, rounded half up. `unit` is not 0.
std::vector<uint64_t> RoundToUnit(std::span<const uint64_t> values, uint64_t unit);

}  // namespace xpu
