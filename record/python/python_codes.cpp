#include "record/python/python_codes.h"

#include <cstring>
#include <utility>

#include "format/base/utf8.h"
#include "record/output/event_sink.h"

namespace xpu {
namespace {

// A program that makes functions without end must not fill our memory.
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

uint32_t PythonCodes::Define(Content content, EventSink& sink) {
  const auto found = numbers_.find(content);
  if (found != numbers_.end()) return found->second;
  const size_t bytes = content.name.size() + content.path.size() + content.line_table.size();
  if (numbers_.size() >= kMaxCodes || bytes > kMaxBytes - bytes_) return 0;
  const auto code = static_cast<uint32_t>(numbers_.size()) + 1;
  Write(code, content, sink);
  bytes_ += bytes;
  const auto known = numbers_.emplace(std::move(content), code).first;
  stated_.push_back({&known->first, round_});
  return code;
}

void PythonCodes::Write(uint32_t code, const Content& content, EventSink& sink) {
  PythonCode event;
  event.code = code;
  event.name = sink.Intern(content.name);
  event.path = sink.Intern(content.path);
  event.first_line = content.first_line;
  event.line_table = sink.Intern(content.line_table);
  event.version = content.version;
  sink.Write(event);
}

void PythonCodes::StateIfDue(uint32_t code, EventSink& sink) {
  if (code == 0 || code > stated_.size()) return;
  Stated& stated = stated_[code - 1];
  if (stated.round == round_) return;
  stated.round = round_;
  Write(code, *stated.content, sink);
}

}  // namespace xpu
