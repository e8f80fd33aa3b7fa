// The path that decides how long the steps of a program take, or the program: of all that threads
// and GPUs do, what must become faster so that it ends earlier.
//
// It is found backwards from the end: what was the last thing that this node waited for? It
// covers all of the time and nothing twice. Where on it a thread runs, CPU samples say what it
// does. They are too rare for one step, so those of all stretches between the same two places in
// the code count together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/critical_path/critical_options.h"
#include "report/critical_path/program_graph.h"

namespace xpu {

// From the beginning of the first step to the end of the last one; without steps, all of the
// recording.
struct CriticalWindow {
  Owner thread;  // whose end it is
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  size_t steps = 0;  // 0: the program has none
  size_t first = 0;  // the number of the first one
  // The duration of all steps that FindCriticalSteps found, also of those beyond a pause.
  uint64_t all_steps_ns = 0;

  uint64_t ns() const { return to_ns - from_ns; }
  // The share of one step, or all of it without steps.
  uint64_t StepNs(uint64_t all_ns) const { return steps == 0 ? all_ns : all_ns / steps; }
};

// Returns the longest stretch without a pause of the recording of the steps that take most time in
// total. A step that a time range of `analysis.shown` cuts is left out.
CriticalWindow FindCriticalSteps(Analysis& analysis, const StepOptions& options);
// Does the same with the steps `all`, which are known already.
CriticalWindow FindCriticalSteps(const Analysis& analysis, const std::vector<StepSeries>& all,
                                 const std::optional<StepRange>& range);

// A stretch of the path.
struct CriticalSegment {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  Edge edge;
  uint64_t ns() const { return end_ns - start_ns; }
};

// "CPU", "CUDA call", "kernel", "launch latency".
std::string_view EdgeKindName(EdgeKind kind);

// Where a thread was in a stretch of running time: shares that add up to 1.
struct CodeShare {
  PathId path;
  double share = 0;
};

class CriticalPath {
 public:
  // Covers the part of the recording that a time range of `analysis.shown` leaves; other filters
  // are not asked. Both must outlive this.
  CriticalPath(Analysis& analysis, CallPaths& paths, const StepOptions& options)
      : CriticalPath(analysis, paths, FindCriticalSteps(analysis, options)) {}
  // `steps`: by FindCriticalSteps. `part`: of what the path is made, if not of all.
  CriticalPath(Analysis& analysis, CallPaths& paths, const CriticalWindow& steps,
               const RecordingPart& part = {});

  // Nothing is known of any thread.
  bool empty() const { return segments_.empty(); }
  const CriticalWindow& window() const { return window_; }
  std::span<const CriticalSegment> segments() const { return segments_; }  // in order
  const ProgramGraph& graph() const { return graph_; }
  // How much of the path is assumed.
  uint64_t assumed_ns() const { return assumed_ns_; }

  // The code of a stretch of running time.
  const std::vector<CodeShare>& CodeOf(const Edge& running);
  // The path of any other stretch, without what is done there.
  PathId PathOf(const Edge& edge);
  // The thread that an edge is of, of GPU work the one that launched it.
  Owner OwnerOf(const Edge& edge) const;

  // How long the window would take if each edge took scale(edge) nanoseconds.
  uint64_t Reevaluate(const std::function<uint64_t(const Edge&)>& scale) const;

 private:
  // All running time between the same two places in the code.
  struct Stretch {
    PathId from;
    PathId to;
    uint64_t ns = 0;  // of all of them together
    std::vector<CodeShare> code;
  };
  void ChooseWindow();
  bool IsWanted(uint32_t pid) const;
  std::optional<uint32_t> ChooseLane() const;
  void FindSegments();
  PathId PathAt(uint32_t node);
  Stretch& StretchOf(const Edge& running);
  Stretch& FindStretch(const Edge& running);
  void AddSamples();
  void CountCode();
  PathId Between(const Stretch& stretch, const Edge& running);

  Analysis& analysis_;
  CallPaths& paths_;
  const ProgramGraph graph_;
  CriticalWindow window_;  // at first that of FindCriticalSteps
  uint32_t end_ = 0;       // the node
  HugePageVector<CriticalSegment> segments_;
  uint64_t assumed_ns_ = 0;
  bool has_samples_ = false;
  std::unordered_map<uint64_t, Stretch> stretches_;  // by both places
  HugePageVector<Stretch*> stretch_of_;              // by edge of the graph, as far as known
};

// A call tree of the path: CPU time, CUDA calls, GPU work below its launch, waits.
CallTree BuildCriticalTree(Analysis& analysis, const StepOptions& options, KernelNames kernel_names,
                           const PathOptions& paths);

}  // namespace xpu
