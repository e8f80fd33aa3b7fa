#include "record/sink/python_codes.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "format/base/utf8.h"

namespace xpu {
namespace {

// A program that creates functions without end must not exhaust the recorder's memory.
constexpr size_t kMaxCodes = size_t{1} << 20;
constexpr size_t kMaxBytes = size_t{256} << 20;

constexpr uint32_t kPython39 = 3 << 8 | 9;
constexpr uint32_t kPython310 = 3 << 8 | 10;

template <typename Character>
std::string Widened(std::span<const std::byte> bytes) {
  std::string text;
  for (size_t at = 0; bytes.size() - at >= sizeof(Character); at += sizeof(Character)) {
    Character character = 0;
    std::memcpy(&character, bytes.data() + at, sizeof(character));
    AppendUtf8(text, character);
  }
  return text;
}

// Writes entries that have lines but no columns.
class LineTableWriter {
 public:
  // `line`: from that of the function's first one; nullopt: none.
  void Add(uint32_t code_bytes, std::optional<int64_t> line) {
    constexpr uint32_t kMostUnits = 8;
    constexpr uint8_t kNoColumns = 13;
    constexpr uint8_t kNone = 15;
    for (uint32_t units = code_bytes / 2; units > 0;) {
      const uint32_t taken = std::min(units, kMostUnits);
      const uint8_t kind = line ? kNoColumns : kNone;
      table_ += static_cast<char>(0x80 | kind << 3 | (taken - 1));
      if (line) AddStep(*line - line_);
      if (line) line_ = *line;
      units -= taken;
    }
  }
  std::string Take() { return std::move(table_); }

 private:
  void AddStep(int64_t step) {
    auto number = static_cast<uint64_t>(step < 0 ? -step * 2 + 1 : step * 2);
    for (; number >= 0x40; number >>= 6) table_ += static_cast<char>((number & 0x3f) | 0x40);
    table_ += static_cast<char>(number);
  }

  std::string table_;
  int64_t line_ = 0;
};

// Pairs: an instruction so many bytes after the previous one begins a line so many further on.
std::string OfPython39(std::string_view table) {
  constexpr uint32_t kLastLineBytes = 512;
  LineTableWriter writer;
  int64_t line = 0;
  for (size_t at = 0; at + 1 < table.size(); at += 2) {
    writer.Add(static_cast<uint8_t>(table[at]), line);
    line += static_cast<int8_t>(table[at + 1]);
  }
  writer.Add(kLastLineBytes, line);
  return writer.Take();
}

// Pairs: so many bytes of code are of a line so many further on than the previous ones.
std::string OfPython310(std::string_view table) {
  constexpr int8_t kNoLine = -128;
  LineTableWriter writer;
  int64_t line = 0;
  for (size_t at = 0; at + 1 < table.size(); at += 2) {
    const auto step = static_cast<int8_t>(table[at + 1]);
    if (step != kNoLine) line += step;
    writer.Add(static_cast<uint8_t>(table[at]),
               step == kNoLine ? std::nullopt : std::optional(line));
  }
  return writer.Take();
}

}  // namespace

std::string NewLineTable(std::string_view old_table, uint32_t version) {
  return version == kPython310 ? OfPython310(old_table) : OfPython39(old_table);
}

std::string PythonText(std::span<const std::byte> bytes, uint32_t kind) {
  switch (kind) {
    case 1:
      return Widened<uint8_t>(bytes);
    case 2:
      return Widened<uint16_t>(bytes);
    case 4:
      return Widened<uint32_t>(bytes);
    default:
      return {};
  }
}

uint32_t PythonCodes::NumberOf(Content content) {
  if (content.version == kPython39 || content.version == kPython310) {
    content.line_table = NewLineTable(content.line_table, content.version);
  }
  const auto found = numbers_.find(content);
  if (found != numbers_.end()) return found->second;
  const size_t bytes = content.name.size() + content.path.size() + content.line_table.size();
  if (numbers_.size() >= kMaxCodes || bytes > kMaxBytes - bytes_) return 0;
  const auto code = static_cast<uint32_t>(numbers_.size()) + 1;
  bytes_ += bytes;
  const auto known = numbers_.emplace(std::move(content), code).first;
  definitions_.push_back({&known->first});
  return code;
}

const PythonCodes::Content* PythonCodes::TakeDue(uint32_t code) {
  if (code == 0 || code > definitions_.size()) return nullptr;
  Definition& definition = definitions_[code - 1];
  if (definition.round == round_) return nullptr;
  definition.round = round_;
  return definition.content;
}

}  // namespace xpu
