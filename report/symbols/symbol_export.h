// The symbols of a capture for other tools, and symbols of this machine for a capture.
#pragma once

#include <string>

#include "format/base/result.h"
#include "report/analysis/analysis.h"

namespace xpu {

// Writes the slices of the capture as DIRECTORY/.build-id/ab/cdef.debug, where gdb, perf and others
// look for the symbols of a build. A file that is there and differs is not overwritten: an error.
// Returns what was done, for the user.
Result<std::string> ExportSymbols(const Analysis& analysis, const std::string& directory);

// Writes the capture to `output` (or in its own place when that is empty) with slices of the files
// that are on this machine, for those that have none yet. `lines`: with source lines, also for
// those that have only names. Returns what was done, for the user.
Result<std::string> EmbedSymbols(Analysis& analysis, const std::string& output, bool lines);

}  // namespace xpu
