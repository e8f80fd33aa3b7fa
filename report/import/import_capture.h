// An imported trace as a capture that every view can show.
//
// Times are on CUPTI's clock in the text, and stay so: the capture's CLOCK_MONOTONIC is that clock.
// Samples older than CUDA 11.8 print times since their own start, so that what came before it is
// negative: then all times are later by as much as makes the first one 1.
#pragma once

#include <string>

#include "format/base/result.h"
#include "format/writer.h"
#include "report/import/import_processes.h"
#include "report/import/import_trace.h"

namespace xpu {

// `source`: what the text is called.
Status WriteImported(ImportedTrace& trace, const std::string& source, CaptureWriter& writer);

}  // namespace xpu
