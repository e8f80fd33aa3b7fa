#include "format/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "format/base/text.h"
#include "format/base/utf8.h"

namespace xpu {

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
    out += '"';
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<uint8_t>(text[at]);
    const size_t bytes = Utf8Length(text, at);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[at];
    } else if (c < 0x20 || c == 0x7f) {
      AppendFormat(out, "\\u{:04x}", c);
    } else if (IsHighControl(text, at)) {
      AppendFormat(out, "\\u00{:02x}", static_cast<uint8_t>(text[at + 1]));
    } else if (const uint32_t bidi = BidiControlAt(text, at); bidi != 0) {
      AppendFormat(out, "\\\\u{:04x}", bidi);
    } else if (bytes == 0) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(at, bytes);
    }
    at += std::max<size_t>(bytes, 1);
  }
  out += '"';
}

}  // namespace xpu
