// What --version says of the capture format.
#pragma once

#include <string>

namespace xpu {

// "container 1, reader generation 1"
std::string CaptureFormatVersion();

// "Cap'n Proto 0.9.2, Zstandard 1.5.4": what the format is linked with.
std::string CaptureLibraries();

}  // namespace xpu
