#include "record/sink/python_codes.h"

#include <cstring>
#include <utility>

#include "format/base/utf8.h"

namespace xpu {
namespace {

// A program that creates functions without end must not exhaust the recorder's memory.
constexpr size_t kMaxCodes = size_t{1} << 20;
constexpr size_t kMaxBytes = size_t{256} << 20;

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

}  // namespace

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
