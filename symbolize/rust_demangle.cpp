#include "symbolize/rust_demangle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "symbolize/rust_names.h"

namespace xpu {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLowerHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

// "$LT$" and its kin; the text of it, empty: none begins here.
std::string Escape(std::string_view name) {
  struct Known {
    std::string_view escape;
    std::string_view text;
  };
  static constexpr std::array<Known, 8> kKnown = {{{"$SP$", "@"},
                                                   {"$BP$", "*"},
                                                   {"$RF$", "&"},
                                                   {"$LT$", "<"},
                                                   {"$GT$", ">"},
                                                   {"$LP$", "("},
                                                   {"$RP$", ")"},
                                                   {"$C$", ","}}};
  for (const Known& known : kKnown) {
    if (name.starts_with(known.escape)) return std::string(known.text);
  }
  std::string text;
  const size_t end = name.find('$', 1);
  uint32_t code = 0;
  if (!name.starts_with("$u") || end == std::string_view::npos || end < 3) return text;
  const auto [stop, error] = std::from_chars(name.data() + 2, name.data() + end, code, 16);
  if (error == std::errc() && stop == name.data() + end && code >= 0x20) AppendUtf8(text, code);
  return text;
}

void AppendLegacyName(std::string& out, std::string_view name) {
  if (name.starts_with("_$")) name.remove_prefix(1);
  while (!name.empty()) {
    if (name.starts_with("..")) {
      out += "::";
      name.remove_prefix(2);
      continue;
    }
    const std::string escaped = name.front() == '$' ? Escape(name) : std::string();
    out += escaped.empty() ? std::string(1, name.front()) : escaped;
    name.remove_prefix(escaped.empty() ? 1 : name.find('$', 1) + 1);
  }
}

bool IsHash(std::string_view name) {
  return name.size() == 17 && name.front() == 'h' &&
         std::all_of(name.begin() + 1, name.end(), IsLowerHex);
}

std::optional<std::string> DemangleLegacy(std::string_view mangled) {
  constexpr std::string_view kPrefix = "_ZN";
  if (!mangled.starts_with(kPrefix)) return std::nullopt;
  std::string_view rest = mangled.substr(kPrefix.size());
  std::string out;
  while (!rest.empty() && IsDigit(rest.front())) {
    size_t length = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    rest.remove_prefix(static_cast<size_t>(stop - rest.data()));
    if (error != std::errc() || length == 0 || length > rest.size()) return std::nullopt;
    const std::string_view name = rest.substr(0, length);
    rest.remove_prefix(length);
    if (rest.starts_with('E') && IsHash(name) && !out.empty()) {
      return out + std::string(RustSuffix(rest.substr(1)));
    }
    if (!out.empty()) out += "::";
    AppendLegacyName(out, name);
  }
  return std::nullopt;
}

}  // namespace

void AppendUtf8(std::string& out, uint32_t code) {
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

std::string_view RustSuffix(std::string_view suffix) {
  return suffix.substr(0, suffix.find(".llvm."));
}

std::optional<std::string> DemangleRust(std::string_view mangled) {
  return mangled.starts_with("_R") ? DemangleRustV0(mangled) : DemangleLegacy(mangled);
}

}  // namespace xpu
