// Why there is no capture where the user says, and what to name instead.
#pragma once

#include <string>

namespace xpu {

// A hint for the file `path`, which is not there. A link to it that leads nowhere is looked
// through.
std::string HintOfMissingCapture(const std::string& path);

}  // namespace xpu
