// How long a recording lasted.
#pragma once

#include <cstdint>

#include "report/model/model.h"

namespace xpu {

// When the recording began, on CLOCK_MONOTONIC; 0 when the capture does not say.
uint64_t StartOf(const Model& model);
// From the start of the recording to its end; 0 when the capture does not say.
uint64_t RunTimeNs(const Model& model);
// From the start to the last event on CLOCK_MONOTONIC; 0 when the capture does not say. How much a
// recording without an end holds.
uint64_t RecordedUntilNs(const Model& model);

}  // namespace xpu
