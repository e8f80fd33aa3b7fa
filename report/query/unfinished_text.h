// Sentences about work that faulted or does not end.
#pragma once

#include <string>

#include "report/analysis/analysis.h"

namespace xpu {

// Names the GPU work that faulted, or that had been pending for long in the end, and the functions
// that launched it; where several operations may be the one, lists them. About the first process
// that has such work. Empty: none has.
std::string UnfinishedText(Analysis& analysis);

// Reports work that was launched before an attach and did not end: it has no records, because CUPTI
// begins when it has ended. Empty: there is none.
std::string EarlierWorkText(Analysis& analysis);

}  // namespace xpu
