// Characters as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace xpu {

// The bytes of the well-formed character (RFC 3629) that begins at `at`, which is inside `text`; 0:
// none begins there.
inline size_t Utf8Length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint8_t {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (byte(0) < 0x80) return 1;
  if (byte(0) < 0xc2 || !continues(1)) return 0;
  if (byte(0) < 0xe0) return 2;
  if (!continues(2)) return 0;
  if (byte(0) < 0xf0) {
    if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;   // longer than its value needs
    if (byte(0) == 0xed && byte(1) >= 0xa0) return 0;  // a surrogate
    return 3;
  }
  if (!continues(3)) return 0;
  if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (byte(0) > 0xf4 || (byte(0) == 0xf4 && byte(1) >= 0x90)) return 0;
  return 4;
}

// Whether a control character of ISO 8859, U+0080 to U+009F, begins at `at`: terminals execute some
// of them.
inline bool IsHighControl(std::string_view text, size_t at) {
  return at + 1 < text.size() && text[at] == '\xc2' && static_cast<uint8_t>(text[at + 1]) < 0xa0;
}

// The control character of bidirectional text (Unicode's Bidi_Control) that begins at `at`; 0: none
// does. They reorder what is shown around them, so that a name reads as another one.
inline uint32_t BidiControlAt(std::string_view text, size_t at) {
  const std::string_view bytes = text.substr(at, 3);
  if (bytes.starts_with("\xd8\x9c")) return 0x61c;
  if (!bytes.starts_with('\xe2') || Utf8Length(bytes, 0) != 3) return 0;
  const uint32_t code = 0x2000 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
  const bool is_mark = code == 0x200e || code == 0x200f;
  const bool reorders = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return is_mark || reorders ? code : 0;
}

// Appends the character `code` as UTF-8; nothing for a number that is no character's.
inline void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x110000) {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace xpu
