// Rust symbol names as the programmer wrote them, without the hashes that tell builds apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace xpu {

// Of both manglings: legacy (_ZN4core3fmt...17h0123456789abcdefE) and v0 (_RNvC...). nullopt: it is
// neither. The result and the time are bounded, also of names made to be endless.
std::optional<std::string> DemangleRust(std::string_view mangled);

}  // namespace xpu
