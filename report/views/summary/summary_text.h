// Lines of the summary, within 80 columns. Captures choose how many there would be, so that there
// are at most kMostRows under a heading; how many more there are is the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/base/output.h"
#include "report/base/text.h"

namespace xpu {

// Rows of a table of the summary.
inline constexpr size_t kSummaryRows = 5;

class SummaryText {
 public:
  static constexpr size_t kWidth = 80;
  // More than the GPUs of a machine have counters.
  static constexpr size_t kMostRows = 64;

  explicit SummaryText(Output& output) : output_(output), colors_(ColorsOf(output)) {}
  SummaryText(const SummaryText&) = delete;
  SummaryText& operator=(const SummaryText&) = delete;
  ~SummaryText() { EndRows(); }

  enum class Tone : uint8_t { kPlain, kGood, kWarning, kBad };

  // "samples   1,561 (cpu-clock, 99 Hz)": cut when it is too long.
  void Line(std::string_view label, std::string_view text, Tone tone = Tone::kPlain);
  // Writes a text in as many lines as it needs.
  void Paragraph(std::string_view label, std::string_view text);
  // Words wrapped, a number together with its %; the first line begins with `first`, which is as
  // wide as the `indent` of the others.
  void Wrapped(std::string_view first, std::string_view indent, std::string_view text);
  // After an empty line.
  void Heading(std::string_view title, std::string_view rest = {});
  // The names above the columns of a table.
  void Names(std::string_view names);
  // Numbers and a name that takes what is left of the width.
  void Row(const std::string& numbers, std::string_view name);
  static size_t WidthAfter(const std::string& numbers) {
    return kWidth - (numbers.size() < kWidth ? numbers.size() : kWidth);
  }
  // A command line to copy: where it is too long it goes on in the next line, after a backslash.
  void Command(std::string_view command);

 private:
  // Labels take the first ten columns.
  ShownText Label(std::string_view label) const;
  ShownText Toned(std::string_view text, Tone tone) const;
  void Wrap(const ShownText& first, std::string_view indent, std::string_view text);
  // Whether there is room for one more under its heading.
  bool HasRoom() { return rows_++ < kMostRows; }
  void EndRows();

  Output& output_;
  const Colors colors_;
  size_t rows_ = 0;  // since the last heading
};

// The names of a few rows in the space that a line of the summary has for them: each name within
// `width` columns, and, where others look the same then but are not, more of it for a line of its
// own; empty: it needs none.
using FittingNames = std::vector<std::pair<std::string, std::string>>;
using FitNames = FittingNames (*)(const std::vector<std::string>& names, size_t width);

// Any text, cut in its middle.
FittingNames FitTexts(const std::vector<std::string>& names, size_t width);
// Demangled names of kernels, as CompactKernelName has them.
FittingNames FitKernels(const std::vector<std::string>& names, size_t width);

}  // namespace xpu
