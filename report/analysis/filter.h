// Pass 6: what a view is about, when it is not about everything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/model/time_range.h"

namespace xpu {

// An empty list or text allows all. Within a list one is enough; all lists must agree.
//
// Processes, threads, commands and times choose among everything. Devices, streams, kernels and
// API calls choose GPU work and the calls that started it: CPU samples are none, so they go.
struct FilterOptions {
  std::vector<uint32_t> pids;  // as the recorder saw them
  std::vector<uint32_t> tids;
  std::vector<std::string> comms;  // names of threads or their processes
  std::vector<uint32_t> devices;   // as the report numbers them
  std::vector<uint32_t> streams;
  std::string kernel;  // POSIX extended regular expression, found anywhere in the full name
  std::string api;
  std::string nvtx;       // likewise, in "domain:text" of a range around it
  TimeRange time;         // what overlaps it
  std::string time_text;  // as it was given

  bool empty() const;
  // Leaves the choice of CPU samples.
  void ForgetGpuWork() {
    devices.clear();
    streams.clear();
    kernel.clear();
    api.clear();
  }
  // "--pid 1,2 --kernel gemm", as a shell takes it.
  std::string Text() const;
};

struct Analysis;
struct Correlation;

// Takes what is not wanted out of the analysis: samples, calls, work, overheads. A call stays as
// long as work that it started or a graph node that it made does, so that work always has its path.
// Losses are not attributed to parts: they stay. kUsage: a regular expression is none.
Status ApplyFilter(const FilterOptions& options, Analysis& analysis);

// Takes the launches out that are neither to be kept (one value each) nor belong to work.
void KeepLaunches(Correlation& correlation, std::vector<bool> keep);

}  // namespace xpu
