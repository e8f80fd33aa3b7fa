// Tables: GPU work and API calls by name, CPU time by function.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/trace/correlation.h"

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

// The smallest value that so many percent of all are not above. `sorted` is not empty.
uint64_t Percentile(const std::vector<uint64_t>& sorted, size_t percent);

// `values` is reordered.
Statistics Summarize(std::string name, std::vector<uint64_t>& values);

// `values` are reordered; largest total first.
using NamedValues = std::map<std::string, std::vector<uint64_t>>;
std::vector<Statistics> SummarizeByTotal(NamedValues& values);

uint64_t SumOfTotals(const std::vector<Statistics>& rows);

// Each list by total, largest first; equal totals by name. Records without a valid time are not in
// the times.
std::vector<Statistics> KernelTimes(const Analysis& analysis, const GpuNames& names);
inline constexpr std::string_view kSetOperationName = "[CUDA memset]";
std::vector<Statistics> CopyTimes(const Analysis& analysis);  // memory operations, nsys's names
std::vector<Statistics> CopySizes(const Analysis& analysis);  // in bytes
// Replays of CUDA graphs.
std::vector<Statistics> GraphTimes(const Analysis& analysis, const GpuNames& names);
std::vector<Statistics> ApiTimes(const Analysis& analysis);
// Work that the driver and CUPTI did for themselves, by kind.
std::vector<Statistics> OverheadTimes(const Analysis& analysis);

// Just-in-time compilation, by what was done and to what.
struct JitTimes {
  Statistics times;  // without a name
  std::string_view operation;
  std::string_view entry;
  uint64_t cache_bytes = 0;  // of the whole cache, where one was used
};
std::vector<JitTimes> JitOperationTimes(const Analysis& analysis);

// Kernels of one name, grid and block.
struct KernelShape {
  Statistics times;
  std::string grid;  // "64 1 1"
  std::string block;
};
std::vector<KernelShape> KernelShapeTimes(const Analysis& analysis, const GpuNames& names);

// Lists of different sorts as one, by total.
struct CategoryTimes {
  std::string_view category;
  Statistics times;
};
std::vector<CategoryTimes> GpuWorkTimes(const Analysis& analysis, const GpuNames& names);
std::vector<CategoryTimes> ApiAndGpuWorkTimes(const Analysis& analysis, const GpuNames& names);

// GPU work by the path that launched it, as ReadablePaths has it, and its own name, the last frame.
struct LaunchPathTime {
  PathId path;
  Statistics times;  // without a name
};
std::vector<LaunchPathTime> LaunchPathTimes(Analysis& analysis, KernelNames kernel_names,
                                            CallPaths& paths);

struct FunctionTime {
  FrameId frame;
  uint64_t self_ns = 0;
  uint64_t self_count = 0;
  uint64_t total_ns = 0;  // with what it called; once for a stack it is in twice
  uint64_t total_count = 0;
};
// Functions of a tree of CPU samples, by self time (or total time) and name. The outermost frame of
// each path, the name of the thread, is no function.
std::vector<FunctionTime> FunctionTimes(const CallTree& tree, const FrameTable& frames);

// CPU and GPU time by process and thread.
struct ThreadTime {
  Owner owner;       // when it was last seen
  uint64_t cpu = 0;  // of its samples: ns, or what they count
  uint64_t samples = 0;
  uint64_t gpu_ns = 0;  // of the work that it launched
  uint64_t gpu_work = 0;
  std::string process_name;
  std::string thread_name;
};

// The busiest first: those of a process together, by CPU and GPU time of the process, then of the
// thread. Threads without any are left out.
std::vector<ThreadTime> ThreadTimes(const Analysis& analysis);

// Adds up threads to processes: tid is 0, thread_name empty.
std::vector<ThreadTime> ProcessTimes(const std::vector<ThreadTime>& threads);

// ---- significance.cpp: whether two groups of numbers differ by more than their noise

// For a few numbers, such as one for each of several runs: Welch's t-test, two-sided, 5 %. Each
// group needs two numbers or more; with fewer nothing differs.
bool DifferByMeans(std::span<const double> a, std::span<const double> b);

// For many numbers without a normal distribution, such as durations of steps: the Mann-Whitney U
// test in its normal approximation, with the correction for ties, two-sided, 1 %.
bool DifferByRanks(std::span<const double> a, std::span<const double> b);

// ---- gpu_waits.cpp: what the CPU waited for

// A synchronization that held up a thread for some time.
bool IsTimedWait(const Analysis& analysis, const GpuWork& work);

// Waits by their call and the kernel or copy that ran at that time: "cudaStreamSynchronize:
// gemm(float*)". A synchronization of a stream waits for its work, others for all work of their
// process. Where several ran at once, the time counts for the first that began. With more waits at
// once than programs have, all work counts as "cudaStreamSynchronize: [any work]".
std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names);

}  // namespace xpu
