// Builds the call tree of a mode: CPU samples and GPU time in one, or what else it shows.
#pragma once

#include <cstdint>
#include <string>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/query/gpu_memory.h"
#include "report/query/time_slices.h"

namespace xpu {

enum class TreeMode : uint8_t {
  kCpuAndGpu,
  kGpu,
  kCpu,
  kIdle,      // the time in which a GPU had nothing to do, under what the CPU did then (gpu_idle.h)
  kProbe,     // hits of the probes that the user asked for
  kOff,       // the time in which threads did not run
  kWall,      // all time of threads, running or not
  kCritical,  // the path that decides how long steps take (critical_path.h)
  kMemory,    // GPU memory in bytes, under the stack that allocated it
};

// The frame that paths begin with, before the name of the thread.
enum class GroupBy : uint8_t {
  kNothing,
  kThread,     // "worker/4712"
  kProcess,    // "python3/4711"
  kStream,     // "GPU0/stream7"; CPU samples and calls: "[CPU]"
  kDevice,     // "GPU0"; likewise
  kRank,       // "rank3"; processes without one: "[no rank]"
  kHost,       // "node7"
  kContainer,  // as Containers::NameOf; processes in none: "[no container]"
};

struct TreeOptions {
  TreeMode mode = TreeMode::kCpuAndGpu;
  KernelNames kernel_names = KernelNames::kFull;
  PathOptions paths{};
  bool device_tags = false;  // leaves name the GPU
  GroupBy by = GroupBy::kNothing;
  bool nvtx_frames = false;               // paths begin with the ranges around them
  bool with_idle = false;                 // kCpuAndGpu has the time of kIdle too
  bool count_samples = false;             // of events: each sample is 1, whatever it stands for
  MemoryView memory = MemoryView::kPeak;  // of kMemory
};

// Paths begin with the name (comm) of the thread, as perf's do. GPU time lies under the stack that
// launched it, the call's name, and a leaf that names the work. Launches without a GPU record are
// there with the duration of the call, in the mode that merges.
//
// `sliced`, if given, gets the same by slices of time, of the modes that TakesSlices.
CallTree BuildCallTree(Analysis& analysis, const TreeOptions& options,
                       SlicedTimes* sliced = nullptr);
// Not those whose times are of stretches that may be in several slices.
bool TakesSlices(TreeMode mode);

// Whether the tree's numbers are times. Samples of an event that counts something else never share
// a tree with GPU time: of kCpuAndGpu one of the two is left, the samples when they were asked for.
bool CountsTime(const Analysis& analysis, const TreeOptions& options);

// That lines of kernels have no exact time in the tree, for standard error; empty: all do.
std::string EstimateText(const CallTree& tree);

// For standard error: what kCpuAndGpu leaves out for that reason, that samples do not count their
// event, and that kWall lacks the time in which threads did not run. Empty: none is so.
std::string LeftOutText(const Analysis& analysis, const TreeOptions& options);

}  // namespace xpu
