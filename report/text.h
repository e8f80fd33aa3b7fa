// Text for each output format. Names come from files and programs: any byte may be in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xpu {

// Valid UTF-8: each byte that is not becomes U+FFFD.
std::string ToValidUtf8(std::string_view text);

// A frame of a folded line. flamegraph.pl and its kin split frames at ';' and the value at the last
// space, and take a number before the value for a second value. So ';' becomes ':', control
// characters become spaces, a space before a number that ends the name becomes '_'. Never empty.
std::string ToFoldedFrame(std::string_view name);

// Appends `text` as a JSON string with its quotes.
void AppendJsonString(std::string& out, std::string_view text);

// Appends `text` in double quotes on one line of ASCII: \" \\ \n \t, other bytes that are no
// printable ASCII as \xNN.
void AppendQuoted(std::string& out, std::string_view text);

// A field of a CSV line, quoted where RFC 4180 asks for it.
std::string ToCsvField(std::string_view text);

// One line of valid UTF-8 of at most `width` characters, cut in the middle with "..": the ends of
// names tell more than their middles.
std::string ToWidth(std::string_view text, size_t width);
// Characters, not bytes.
size_t WidthOf(std::string_view valid_utf8);

// "1.234 ms", "12.35 s", "1.5 GB" (10^9), "12,345".
std::string HumanDuration(uint64_t ns);
std::string HumanBytes(uint64_t bytes);
std::string WithThousands(uint64_t number);
// The same for a number in text, which may have a fraction.
std::string WithThousands(std::string number);

}  // namespace xpu
