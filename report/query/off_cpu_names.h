// Names for the reasons why threads did not run.
#pragma once

#include <string>
#include <string_view>

#include "format/events.h"
#include "report/analysis/analysis.h"

namespace xpu {

std::string_view StateName(OffCpuState state);

// For a thread that waited, the system call in which it did and its kind of file: "futex", "read
// pipe"; otherwise its state.
std::string WaitName(const OffCpuWait& wait);

// Who ended the wait: "worker/4711", "[interrupt]".
std::string WakerName(const Analysis& analysis, const OffCpuWait& wait);

}  // namespace xpu
