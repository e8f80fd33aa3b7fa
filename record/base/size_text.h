// Formats sizes in the units that --max-size and similar options accept.
#pragma once

#include <cstdint>
#include <string>

namespace xpu {

// "999 B", "1.5 KiB", ...
std::string SizeText(uint64_t bytes);

}  // namespace xpu
