// When a recording was paused: what happened then is not in the capture, so that shares of time are
// shares of the rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/model/model.h"

namespace xpu {

struct Pause {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  StringId cause;
};

// In order, none that overlap. Of several captures together none: while one of them paused the
// others did not.
std::vector<Pause> FindPauses(const Model& model);
// When no recording ran, of several that were made one after the other. In order.
std::vector<Pause> BetweenRecordings(const Model& model);
// How long of that time was paused.
uint64_t PausedNs(const std::vector<Pause>& pauses, uint64_t start_ns, uint64_t end_ns);
// "3.2 s, 2 pauses (SIGUSR2)", "3.2 s, the rest lies between two recordings"; empty: all is.
std::string RecordedText(const Model& model);

}  // namespace xpu
