// --import: captures made of the text that other tools print.
#pragma once

#include <string>

#include "format/base/result.h"

namespace xpu {

// Reads `path` ("-": standard input), the text that the printer of CUPTI's samples makes
// (import_trace.h), and writes the capture `output`. Returns what to say about it, in lines.
// kInvalid: there is no record in the text.
Result<std::string> ImportCuptiText(const std::string& path, const std::string& output);

}  // namespace xpu
