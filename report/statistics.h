// Tables: GPU work and API calls by name, CPU time by function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/analysis.h"
#include "report/call_tree.h"
#include "report/gpu_names.h"

namespace xpu {

// Many values of one name.
struct Statistics {
  std::string name;
  uint64_t count = 0;
  uint64_t total = 0;
  uint64_t smallest = 0;
  uint64_t largest = 0;
  double average = 0;
  double median = 0;
  double deviation = 0;  // of a sample (n - 1); 0 for one value
};

// `values` is reordered.
Statistics Summarize(std::string name, std::vector<uint64_t>& values);

// Each list by total, largest first; equal totals by name. Records without a valid time are not in
// the times.
std::vector<Statistics> KernelTimes(const Analysis& analysis, const GpuNames& names);
std::vector<Statistics> CopyTimes(const Analysis& analysis);  // copies and sets, nsys's names
std::vector<Statistics> CopySizes(const Analysis& analysis);  // in bytes
// Replays of CUDA graphs.
std::vector<Statistics> GraphTimes(const Analysis& analysis, const GpuNames& names);
std::vector<Statistics> ApiTimes(const Analysis& analysis);
// What the driver and CUPTI did for themselves, by kind.
std::vector<Statistics> OverheadTimes(const Analysis& analysis);

struct FunctionTime {
  FrameId frame;
  uint64_t self_ns = 0;
  uint64_t self_count = 0;
  uint64_t total_ns = 0;  // with what it called; once for a stack it is in twice
  uint64_t total_count = 0;
};
// Of a tree of CPU samples, by self time (or total time) and name. The outermost frame of each
// path, the name of the thread, is no function.
std::vector<FunctionTime> FunctionTimes(const CallTree& tree, const FrameTable& frames);

struct PathTime {
  PathId path;
  uint64_t ns = 0;
  uint64_t count = 0;
};
// The paths with time of their own, most first, then as they came.
std::vector<PathTime> PathTimes(const CallTree& tree);

}  // namespace xpu
