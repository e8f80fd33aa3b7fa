// Text for each output format. Names come from files and programs: any byte may be in them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// A frame of a folded line. flamegraph.pl and similar tools split frames at ';' and the value at
// the last space, and take a number before the value for a second value. So ';' becomes ':', a
// space before a number that ends the name becomes '_'. Control characters as ForOneLine. Never
// empty.
std::string ToFoldedFrame(std::string_view name);

// Appends `text` in double quotes on one line of ASCII: \" \\ \n \t, other bytes that are no
// printable ASCII as \xNN.
void AppendQuoted(std::string& out, std::string_view text);

// A field of a CSV line, quoted where RFC 4180 asks for it. As ForOneLine, and a backslash is
// "\x5c", so that each "\xNN" is a byte of the name.
std::string ToCsvField(std::string_view text);

// One line, as ForOneLine, of at most `width` characters, cut in the middle with "..": the ends of
// names say more than their middles.
std::string ToWidth(std::string_view text, size_t width);
// "main > [5 frames] > forward > cudaLaunchKernel": of the frames of a path, outermost first, the
// first one and as many of the last ones as `width` holds, but at least the last.
std::string ShortPath(std::span<const std::string> frames, size_t width);
// Characters, not bytes.
size_t WidthOf(std::string_view valid_utf8);

// "1.234 ms", "12.35 s", "1.5 GB" (10^9), "12,345".
std::string HumanDuration(uint64_t ns);
std::string HumanBytes(uint64_t bytes);
std::string WithThousands(uint64_t number);
// The same for a number in text, which may have a fraction.
std::string WithThousands(std::string number);

// Integers in a coarser unit whose sum is the rounded exact sum: each value divided by `unit`,
// rounded down, then one more for those with the largest remainders (of equal ones the first) until
// the sum is the exact sum divided by `unit`, rounded half up. `unit` is not 0.
std::vector<uint64_t> RoundToUnit(std::span<const uint64_t> values, uint64_t unit);

}  // namespace xpu
