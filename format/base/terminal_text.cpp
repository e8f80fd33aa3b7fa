#include "format/base/terminal_text.h"

#include <algorithm>
#include <cstddef>

#include "format/base/text.h"
#include "format/base/utf8.h"

namespace xpu {
namespace {

// Objects, so that the loop over the bytes needs no call for each.
constexpr auto kIsPrintable = [](char c) { return c >= ' ' && c < 0x7f; };
constexpr auto kIsPrintableOrSpace = [](char c) {
  return kIsPrintable(c) || c == '\n' || c == '\t';
};

// `is_plain` says what is shown as it is, of ASCII.
template <typename IsPlain>
std::string Escaped(std::string_view text, IsPlain is_plain) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto plain =
        static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = byte < 0x80 || IsHighControl(text, 0) ? 0 : Utf8Length(text, 0);
    if (const uint32_t bidi = BidiControlAt(text, 0); bidi != 0) {
      AppendFormat(shown, "\\u{:04x}", bidi);
      text.remove_prefix(length);
    } else if (length == 0) {
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

std::string ForTerminal(std::string_view text) { return Escaped(text, kIsPrintableOrSpace); }

std::string ForOneLine(std::string_view text) { return Escaped(text, kIsPrintable); }

std::string ForTerminal(const Error& error) {
  const std::string message = ForOneLine(error.message);
  return error.hint.empty() ? message : message + "\nhint: " + ForTerminal(error.hint);
}

}  // namespace xpu
