// Pieces of Rust's two manglings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpu {

// _RNvC... nullopt: it is none, or damaged.
std::optional<std::string> DemangleRustV0(std::string_view mangled);
// "größe" of "gre_6ka8i" (RFC 3492 with '_' for '-'); nullopt: it is damaged or very long.
std::optional<std::string> DecodePunycode(std::string_view text);

// What is kept of the text behind a mangled name: compilers append ".llvm.1234" to tell copies
// apart; ".cold" and the like mean something.
std::string_view RustSuffix(std::string_view suffix);

}  // namespace xpu
