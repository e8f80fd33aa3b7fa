// What the GPUs did over time, as lanes of the strip: how much of the time each was busy, hardware
// counters (multiprocessors, tensor cores, memory), power, clock, and when something held that
// down.
//
// All lanes have the same bins. Where there are no steps that can be chosen, these bins can be: the
// graph then shows the CPU time of that span, and the GPU work that ran in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/query/time_slices.h"
#include "report/views/flame_graph/flame_graph_strip.h"

namespace xpu {

// The time in which something is known of the clocks or counters of GPUs that recorded processes
// use, with their work, in equal parts; empty: nothing is.
TimeSlices PartsOfGpuTime(const Analysis& analysis);

// The tree by these parts, for BuildCallTree().
SlicedTimes SliceByParts(const TimeSlices& parts);

// The lanes over `parts`, and the choice of them if `sliced` has any of them.
FlameStrip StripOfParts(const Analysis& analysis, const TimeSlices& parts,
                        const SlicedTimes& sliced);

// The same lanes below those of steps, over their time; they cannot be chosen.
void AddGpuLanes(const Analysis& analysis, FlameStrip& strip);

}  // namespace xpu
