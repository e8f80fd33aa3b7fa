#include "format/python_lines.h"

#include <algorithm>
#include <cstddef>

namespace xpu {
namespace {

constexpr uint32_t kUnitBytes = 2;  // what instructions and their caches are counted in
constexpr int64_t kMaxLine = int64_t{1} << 30;

// Kinds of entries, from bits 3 to 6 of their first byte; lower ones are short.
constexpr uint8_t kOneLine0 = 10;  // the line goes up by 0, 1 or 2, columns in two bytes
constexpr uint8_t kOneLine2 = 12;
constexpr uint8_t kNoColumns = 13;
constexpr uint8_t kLong = 14;
constexpr uint8_t kNone = 15;

class TableBytes {
 public:
  explicit TableBytes(std::string_view bytes) : bytes_(bytes) {}

  std::optional<uint8_t> Next() {
    if (at_ == bytes_.size()) return std::nullopt;
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  // False: there are not so many.
  bool Skip(size_t count) {
    if (bytes_.size() - at_ < count) return false;
    at_ += count;
    return true;
  }
  // Six bits a byte, the lowest first; bit 6 says that more follow.
  std::optional<uint64_t> Number() {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 36; shift += 6) {
      const std::optional<uint8_t> byte = Next();
      if (!byte) return std::nullopt;
      number |= uint64_t{*byte & 0x3fu} << shift;
      if ((*byte & 0x40) == 0) return number;
    }
    return std::nullopt;
  }
  std::optional<int64_t> SignedNumber() {
    const std::optional<uint64_t> number = Number();
    if (!number) return std::nullopt;
    const auto magnitude = static_cast<int64_t>(*number >> 1);
    return (*number & 1) != 0 ? -magnitude : magnitude;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// By how much the line goes up, reading all of the entry; nullopt: it is damaged.
std::optional<int64_t> LineStep(uint8_t kind, TableBytes& bytes) {
  if (kind == kNone) return 0;
  if (kind == kNoColumns) return bytes.SignedNumber();
  if (kind == kLong) {
    const std::optional<int64_t> step = bytes.SignedNumber();
    for (int i = 0; i < 3; ++i) {  // the last line and both columns
      if (!bytes.Number()) return std::nullopt;
    }
    return step;
  }
  const bool is_one_line = kind >= kOneLine0 && kind <= kOneLine2;
  if (!bytes.Skip(is_one_line ? 2 : 1)) return std::nullopt;
  return is_one_line ? kind - kOneLine0 : 0;
}

}  // namespace

PythonLines::PythonLines(std::string_view line_table) {
  TableBytes bytes(line_table);
  int64_t line = 0;
  uint32_t end = 0;
  while (const std::optional<uint8_t> head = bytes.Next()) {
    if ((*head & 0x80) == 0) return;
    const uint8_t kind = *head >> 3 & 0xf;
    const std::optional<int64_t> step = LineStep(kind, bytes);
    if (!step) return;
    line += *step;
    if (line < -kMaxLine || line > kMaxLine) return;
    const uint32_t bytes_covered = ((*head & 7u) + 1) * kUnitBytes;
    if (bytes_covered > ~end) return;
    end += bytes_covered;
    Entry& entry = entries_.emplace_back(Entry{end, std::nullopt});
    if (kind == kNone) continue;
    entry.line = static_cast<int32_t>(line);
    has_lines_ = true;
  }
}

std::optional<int64_t> PythonLines::At(uint32_t offset) const {
  const auto entry = std::upper_bound(entries_.begin(), entries_.end(), offset,
                                      [](uint32_t at, const Entry& e) { return at < e.end; });
  return entry == entries_.end() ? std::nullopt : std::optional<int64_t>(entry->line);
}

}  // namespace xpu
