// Text as JSON (RFC 8259).
#pragma once

#include <string>
#include <string_view>

namespace xpu {

// Appends `text` as a JSON string with its quotes: each byte that is not UTF-8 becomes U+FFFD,
// control characters are escaped. Controls of bidirectional text become the six characters
// "\u202e", since pages and trace viewers show what they read.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace xpu
