// What to know of a recording that was cut into several captures.
#pragma once

#include <string>

#include "report/model/model.h"

namespace xpu {

// "part 3 of the recording, which goes on in part 4"; empty: it was not cut.
std::string PartsText(const Model& model);
// Likewise, as a line of its own; empty also when nothing of the recording is missing.
std::string PartsNote(const Model& model);

}  // namespace xpu
