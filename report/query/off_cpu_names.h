// Names for the reasons why threads did not run.
#pragma once

#include <string>
#include <string_view>

#include "format/events.h"

namespace xpu {

std::string_view StateName(OffCpuState state);

// For a thread that waited, the system call in which it did: "futex"; otherwise its state.
std::string WaitName(const OffCpuWait& wait);

}  // namespace xpu
