#include "format/base/terminal_text.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/base/text.h"
#include "format/base/utf8.h"

namespace xpu {
namespace {

// Objects, so that the loop over the bytes needs no call for each.
constexpr auto kIsPrintable = [](char c) { return c >= ' ' && c < 0x7f; };
constexpr auto kIsPrintableOrSpace = [](char c) {
  return kIsPrintable(c) || c == '\n' || c == '\t';
};

// Whether all eight are: texts are long, and seldom contain anything else.
bool ArePrintable(const char* eight) {
  constexpr uint64_t kEach = 0x0101010101010101;
  uint64_t bytes = 0;
  std::memcpy(&bytes, eight, sizeof(bytes));
  const uint64_t below_space = bytes - kEach * ' ';
  const uint64_t is_delete = (bytes ^ kEach * 0x7f) - kEach;
  return ((bytes | below_space | is_delete) & kEach * 0x80) == 0;
}

template <typename IsPlain>
size_t PlainPrefix(std::string_view text, IsPlain is_plain) {
  for (size_t at = 0;; ++at) {
    while (at + 8 <= text.size() && ArePrintable(text.data() + at)) at += 8;
    if (at == text.size() || !is_plain(text[at])) return at;
  }
}

// `is_plain` says what is shown as it is, of ASCII.
template <typename IsPlain>
std::string Escaped(std::string_view text, IsPlain is_plain) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t plain = PlainPrefix(text, is_plain);
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = byte < 0x80 || IsHighControl(text, 0) ? 0 : Utf8Length(text, 0);
    if (const uint32_t bidi = BidiControlAt(text, 0); bidi != 0) {
      AppendFormat(shown, "\\u{:04x}", bidi);
      text.remove_prefix(length);
    } else if (length == 0) {
      shown += "\\x" + ToHex(text.substr(0, 1));
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown;
}

}  // namespace

std::string ForTerminal(std::string_view text) { return Escaped(text, kIsPrintableOrSpace); }

std::string ForOneLine(std::string_view text) { return Escaped(text, kIsPrintable); }

std::string ForTerminal(const Error& error) {
  const std::string message = ForOneLine(error.message);
  return error.hint.empty() ? message : message + "\nhint: " + ForTerminal(error.hint);
}

}  // namespace xpu
