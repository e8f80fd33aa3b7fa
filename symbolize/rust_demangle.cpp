#include "symbolize/rust_demangle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "format/base/number.h"
#include "format/base/utf8.h"
#include "symbolize/rust_names.h"

namespace xpu {
namespace {

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

std::optional<std::string> DecodePunycode(std::string_view text) {
  constexpr uint32_t kBase = 36;
  constexpr uint32_t kMin = 1;
  constexpr uint32_t kMax = 26;
  constexpr size_t kMaxCharacters = 128;
  const size_t split = text.rfind('_');
  std::u32string characters;
  if (split != std::string_view::npos) {
    for (const char c : text.substr(0, split)) characters += static_cast<unsigned char>(c);
    text.remove_prefix(split + 1);
  }
  uint64_t code = 0x80;
  uint64_t at = 0;
  uint64_t bias = 72;
  for (bool first = true; !text.empty(); first = false) {
    const uint64_t at_before = at;
    uint64_t weight = 1;
    for (uint64_t k = kBase;; k += kBase) {
      if (text.empty()) return std::nullopt;
      const char c = text.front();
      text.remove_prefix(1);
      const bool is_letter = c >= 'a' && c <= 'z';
      if (!is_letter && !IsDigit(c)) return std::nullopt;
      const auto digit = static_cast<uint64_t>(is_letter ? c - 'a' : c - '0' + 26);
      at += digit * weight;
      if (at > 0x10ffff * kMaxCharacters) return std::nullopt;
      const uint64_t threshold = k <= bias ? kMin : std::min<uint64_t>(k - bias, kMax);
      if (digit < threshold) break;
      weight *= kBase - threshold;
      if (weight > 0x10ffff * kMaxCharacters) return std::nullopt;
    }
    const uint64_t count = characters.size() + 1;
    uint64_t delta = (at - at_before) / (first ? 700 : 2);
    delta += delta / count;
    bias = 0;
    for (; delta > (kBase - kMin) * kMax / 2; bias += kBase) delta /= kBase - kMin;
    bias += (kBase - kMin + 1) * delta / (delta + 38);
    code += at / count;
    at %= count;
    if (code > 0x10ffff || count > kMaxCharacters) return std::nullopt;
    characters.insert(characters.begin() + static_cast<ptrdiff_t>(at), static_cast<char32_t>(code));
    ++at;
  }
  std::string out;
  for (const char32_t c : characters) AppendUtf8(out, c);
  return out;
}

std::string_view RustSuffix(std::string_view suffix) {
  return suffix.substr(0, suffix.find(".llvm."));
}

std::optional<std::string> DemangleRust(std::string_view mangled) {
  return mangled.starts_with("_R") ? DemangleRustV0(mangled) : DemangleLegacy(mangled);
}

}  // namespace xpu
