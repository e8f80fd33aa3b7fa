#include "format/base/terminal_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "format/base/text.h"

namespace xpu {
namespace {

bool IsPrintable(char c) { return c >= ' ' && c < 0x7f; }
bool IsPrintableOrSpace(char c) { return IsPrintable(c) || c == '\n' || c == '\t'; }

// The length of the character at the front of `text`, which begins with a byte above 0x7f; 0: it is
// none, or a control character of ISO 8859 (U+0080 to U+009F).
size_t LengthOfCharacter(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool is_longer_than_needed =
      (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  return code < 0xa0 || code > 0x10ffff || is_surrogate || is_longer_than_needed ? 0 : length;
}

// `is_plain` says what is shown as it is, of ASCII.
std::string Escaped(std::string_view text, bool (*is_plain)(char)) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto plain =
        static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = byte < 0x80 ? 0 : LengthOfCharacter(text);
    if (length == 0) {
      AppendFormat(shown, "\\x{:02x}", byte);
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown;
}

}  // namespace

std::string ForTerminal(std::string_view text) { return Escaped(text, IsPrintableOrSpace); }

std::string ForOneLine(std::string_view text) { return Escaped(text, IsPrintable); }

std::string ForTerminal(const Error& error) {
  const std::string message = ForOneLine(error.message);
  return error.hint.empty() ? message : message + "\nhint: " + ForTerminal(error.hint);
}

}  // namespace xpu
