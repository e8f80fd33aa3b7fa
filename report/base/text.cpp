#include "report/base/text.h"

#include <algorithm>
#include <array>

#include "format/base/check.h"
#include "format/base/counted.h"
#include "format/base/number.h"
#include "format/base/utf8.h"

namespace xpu {
namespace {

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

// Where a space is followed by digits (with one point) up to the end; npos: nowhere.
size_t SpaceBeforeLastNumber(std::string_view name) {
  size_t at = name.size();
  while (at > 0 && (IsDigit(name[at - 1]) || name[at - 1] == '.')) --at;
  return at < name.size() && at > 0 && name[at - 1] == ' ' ? at - 1 : std::string_view::npos;
}

}  // namespace

std::string ToFoldedFrame(std::string_view name) {
  std::string frame = ForOneLine(name);
  std::replace(frame.begin(), frame.end(), ';', ':');
  while (frame.ends_with(' ')) frame.pop_back();
  frame.erase(0, std::min(frame.find_first_not_of(' '), frame.size()));
  if (frame.empty()) return "[unknown]";
  if (const size_t at = SpaceBeforeLastNumber(frame); at != std::string::npos) frame[at] = '_';
  return frame;
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (IsControl(c) || static_cast<uint8_t>(c) >= 0x80) {
      out += "\\x" + ToHex({&c, 1});
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string ToCsvField(std::string_view text) {
  const bool is_quoted = text.find_first_of(",\"") != std::string_view::npos;
  std::string field(is_quoted ? 1 : 0, '"');
  // Between backslashes, so that one of the name is distinguished from one of an escape.
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\\', at), text.size());
    for (const char c : ForOneLine(text.substr(at, end - at))) {
      if (c == '"') field += '"';
      field += c;
    }
    if (end < text.size()) field += "\\x5c";
    at = end + 1;
  }
  if (is_quoted) field += '"';
  return field;
}

void CsvLine::Text(std::string_view text) {
  const bool is_signed = text.starts_with('+') || text.starts_with('-');
  const char second = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : ' ';
  const bool is_run = text.starts_with('=') || text.starts_with('@') ||
                      (is_signed && second >= 'a' && second <= 'z');
  Add(ToCsvField(is_run ? Format("'{}", text) : std::string(text)));
}

void CsvLine::Add(const std::string& field) {
  if (!std::exchange(is_first_, false)) line_ += ',';
  line_ += field;
}

ShownText CsvLine::Take() {
  is_first_ = true;
  return ShownText(std::exchange(line_, {}) + "\n");
}

size_t WidthOf(std::string_view valid_utf8) {
  return static_cast<size_t>(std::count_if(valid_utf8.begin(), valid_utf8.end(), [](char c) {
    return (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  }));
}

std::string ToWidth(std::string_view text, size_t width) {
  std::string line = ForOneLine(text);
  const size_t characters = WidthOf(line);
  if (characters <= width) return line;
  constexpr std::string_view kCut = "..";
  if (width <= kCut.size()) return std::string(kCut.substr(0, width));
  const size_t kept = width - kCut.size();
  const size_t head = kept - kept / 2;
  std::string cut;
  size_t character = 0;
  for (size_t at = 0; at < line.size(); ++character) {
    const size_t bytes = Utf8Length(line, at);
    if (character == head) cut += kCut;
    if (character < head || character >= characters - kept / 2) cut += line.substr(at, bytes);
    at += bytes;
  }
  return cut;
}

std::string ShortPath(std::span<const std::string> frames, size_t width) {
  if (frames.empty()) return {};
  constexpr std::string_view kArrow = " > ";
  size_t shown = 0;
  size_t taken = WidthOf(frames.front());
  while (shown + 1 < frames.size()) {
    const size_t more = kArrow.size() + WidthOf(frames[frames.size() - 1 - shown]);
    if (shown > 0 && taken + more > width) break;
    taken += more;
    ++shown;
  }
  std::string text = frames.front();
  const size_t left_out = frames.size() - 1 - shown;
  if (left_out > 0) {
    AppendFormat(text, "{}[{}]", kArrow, Counted(left_out, "frame", "frames"));
  }
  for (size_t i = frames.size() - shown; i < frames.size(); ++i) {
    text += kArrow;
    text += frames[i];
  }
  return text;
}

std::string TimeSince(uint64_t start_ns, uint64_t time_ns) {
  const uint64_t since_us = (time_ns - std::min(time_ns, start_ns)) / 1000;
  return Format("{}.{:06}s", since_us / 1'000'000, since_us % 1'000'000);
}

std::string HumanDuration(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return Format("{} ns", ns);
  if (ns < 1'000'000) return Format("{:.4g} us", value / 1e3);
  if (ns < 1'000'000'000) return Format("{:.4g} ms", value / 1e6);
  if (ns < 1'000'000'000'000) return Format("{:.4g} s", value / 1e9);
  return WithThousands(ns / 1'000'000'000) + " s";
}

std::string HumanBytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return Format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1e3;
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1e3;
    ++unit;
  }
  return Format("{:.1f} {}", value, kUnits[unit]);
}

std::string WithThousands(uint64_t number) { return WithThousands(std::to_string(number)); }

std::string WithThousands(std::string number) {
  const size_t digits = std::min(number.find('.'), number.size());
  for (auto at = static_cast<ptrdiff_t>(digits) - 3; at > 0; at -= 3) {
    number.insert(static_cast<size_t>(at), 1, ',');
  }
  return number;
}

__extension__ using Wide = unsigned __int128;

std::vector<uint64_t> RoundToUnit(std::span<const uint64_t> values, uint64_t unit) {
  XPU_CHECK(unit != 0);
  std::vector<uint64_t> rounded;
  std::vector<size_t> with_remainder;
  rounded.reserve(values.size());
  Wide exact = 0;
  Wide given = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    rounded.push_back(values[i] / unit);
    exact += values[i];
    given += rounded.back();
    if (values[i] % unit != 0) with_remainder.push_back(i);
  }
  const Wide total = exact / unit + (exact % unit >= unit - unit / 2 ? 1 : 0);
  const auto missing = static_cast<size_t>(total - given);
  XPU_CHECK(missing <= with_remainder.size());
  const auto last = with_remainder.begin() + static_cast<ptrdiff_t>(missing);
  std::partial_sort(with_remainder.begin(), last, with_remainder.end(), [&](size_t a, size_t b) {
    const uint64_t remainder_a = values[a] % unit;
    const uint64_t remainder_b = values[b] % unit;
    return remainder_a != remainder_b ? remainder_a > remainder_b : a < b;
  });
  for (auto i = with_remainder.begin(); i != last; ++i) ++rounded[*i];
  return rounded;
}

}  // namespace xpu
