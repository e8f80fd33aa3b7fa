// The strip above the picture: lanes of bars over one axis of time, and the choice of some of them.
//
// A lane is anything that has a value at times: how long steps take, how busy a GPU is. The bars of
// some lanes are slices of the call tree too (query/time_slices.h): with one or several of them
// chosen, the graph shows the time of these alone. In the data of the page:
//
//   strip     null: there is nothing to show; otherwise {fromNs, toNs, lanes, choice}
//     fromNs, toNs   what the axis shows; since the start of the recording, as all times here
//     lanes          [{name, unit, heat, top, first, gap: [...], length: [...], value: [...]}]:
//     from the
//                    end of the bar before to its beginning (of the first bar: from 0), and from
//                    there to its end; value: null where it is the length; unit: of the values,
//                    "ns", "%" or any other; heat: whether values are colors of equal bars; top:
//                    the value of a full bar, larger ones are cut; first: the number of the slice
//                    that the first bar is, the next bar being the next slice; null: the bars
//                    cannot be chosen
//     choice         null: no bar can be chosen; otherwise {what, text, first, each, size: [...],
//                    node: [...], ns: [...], count: [...]}: the slices of the tree; what:
//                    "step" or "part"; text: how they were found; each: how many steps or parts a
//                    slice has, the first one
//                    being the step of number `first`; size: how many nodes have time in each
//                    slice, and then of these, one slice after the other, the index of the node,
//                    less that of the one before it in the slice, and its own time and count there
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/query/time_slices.h"
#include "report/views/flame_graph/page_data.h"
#include "report/workload/steps.h"

namespace xpu {

struct StripLane {
  struct Bar {
    uint64_t start_ns = 0;  // CLOCK_MONOTONIC
    uint64_t end_ns = 0;
  };
  std::string name;
  std::string unit = "ns";
  bool is_heat = false;
  std::vector<Bar> bars;            // in order; they do not overlap
  std::vector<double> values = {};  // of the bars; none: their lengths
  double top = 0;
  std::optional<uint32_t> first_slice = {};
};

struct FlameStrip {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  std::vector<StripLane> lanes;

  // The choice:
  std::string what = {};  // empty: there is none
  std::string text = {};
  uint64_t first = 0;  // the number of the first slice's first step
  uint32_t each = 1;
  uint32_t slices = 0;
  std::vector<SlicedTimes::Part> parts = {};  // in order; their slices are less than `slices`
};

// The steps that are shown; nullopt: there are fewer than two. `sliced`: the tree by these steps.
std::optional<FlameStrip> StripOfSteps(const Analysis& analysis, const StepDefinition& definition,
                                       const std::vector<StepSeries>& all,
                                       const SlicedTimes& sliced);

// "strip":... `node_of_path`: by path - 1, its index in the page; kNoNode: it is not there.
inline constexpr uint32_t kNoNode = UINT32_MAX;
void WriteStrip(const FlameStrip* strip, uint64_t start_ns,
                const std::vector<uint32_t>& node_of_path, PageData& data);

// ---- flame_graph_gpus.cpp
//
// Lanes of the strip for what the GPUs did over time: how much of the time each was busy, hardware
// counters (multiprocessors, tensor cores, memory), power, clock, and when something held that
// down.
//
// All lanes have the same bins. Where there are no steps that can be chosen, these bins can be: the
// graph then shows the CPU time of that span, and the GPU work that ran in it.

// The time in which something is known of the clocks or counters of GPUs that recorded processes
// use, with their work, in equal parts; empty: nothing is.
TimeSlices PartsOfGpuTime(const Analysis& analysis);

// The tree by these parts, for BuildCallTree().
SlicedTimes SliceByParts(const TimeSlices& parts);

// The lanes over `parts`, and the choice of them if `sliced` has any of them.
FlameStrip StripOfParts(const Analysis& analysis, const TimeSlices& parts,
                        const SlicedTimes& sliced);

// Adds the lanes below those of steps, over their time; they cannot be chosen.
void AddGpuLanes(const Analysis& analysis, FlameStrip& strip);

// ---- flame_graph_ranks.cpp

// Adds a lane for each rank of a job with collectives: how long others waited for it in each of its
// steps. Together they are a map of ranks by steps.
void AddRankLanes(const Analysis& analysis, const std::vector<StepSeries>& steps,
                  std::optional<FlameStrip>& strip);

}  // namespace xpu
