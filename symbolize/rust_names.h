// Pieces of Rust's two manglings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpu {

// _RNvC... nullopt: it is none, or damaged.
std::optional<std::string> DemangleRustV0(std::string_view mangled);

// Nothing for what is no character.
void AppendUtf8(std::string& out, uint32_t code);

// What is kept of the text behind a mangled name: compilers append ".llvm.1234" to tell copies
// apart; ".cold" and the like mean something.
std::string_view RustSuffix(std::string_view suffix);

}  // namespace xpu
