// Names of the slices of a trace, and their arguments: the details that are shown beside them.
// Names that occur often are made once. Keys are those of PyTorch's traces where these have one,
// for the scripts that read them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/analysis/overheads.h"
#include "report/query/code_samples.h"
#include "report/stacks/mixed_stacks.h"
#include "report/stacks/stack_resolver.h"
#include "report/views/timeline/trace_sink.h"

namespace xpu {

class TraceNames {
 public:
  // All must outlive this.
  TraceNames(Analysis& analysis, CallPaths& paths, KernelNames kernel_names, TraceSink& sink)
      : analysis_(analysis), paths_(paths), sink_(sink), gpu_names_(analysis, kernel_names) {}

  // Each holds until the next call.
  const TraceName& OfCall(const Launch& launch);
  const TraceName& OfWork(const GpuWork& work);
  std::string TitleOf(const GpuWork& work) const { return gpu_names_.Title(work); }
  const TraceName& OfFrame(FrameId frame);

  // Outermost first, without the name of the thread, whose track it is on.
  std::string StackOf(PathId path) const;

  // Where the graph's node that did the work was made, outermost first.
  const TraceText& CapturedAt(const GpuWork& work);
  // The kernel of a launch that a probe saw, empty when it is not known.
  std::string KernelOf(const Launch& launch);

 private:
  Analysis& analysis_;
  CallPaths& paths_;
  TraceSink& sink_;
  GpuNames gpu_names_;
  std::unordered_map<const std::string*, TraceName> calls_;  // by the API's name
  std::unordered_map<StringId, TraceName> kernels_;
  std::vector<TraceName> frames_;     // by id
  std::vector<TraceText> creations_;  // by path
  TraceName other_;
  TraceText unknown_creation_;
};

// Which line of the program made a call: the arguments of its slice.
class TraceCallers {
 public:
  // Both must outlive this.
  TraceCallers(Analysis& analysis, TraceSink& sink);

  // With file and line where these are known, else with the library: "gelu Blas.cpp:12",
  // "gelu (libtorch.so)", "linear.py:Linear.forward:134".
  struct Callers {
    TraceText innermost;  // the function that made the call
    TraceText python;     // the innermost one in Python; empty: there is none
    // The innermost one in Python of no installed package; empty: there is none, or it is `python`.
    TraceText script;
  };
  // Holds until the next call.
  const Callers& Of(const Launch& launch);

 private:
  Callers Find(const ResolvedStack& stack) const;

  Analysis& analysis_;
  TraceSink& sink_;
  StackResolver native_;
  MixedStacks stacks_;
  std::map<SpaceId, std::unordered_map<uint64_t, Callers>> known_;  // by both stacks
  Callers other_;
};

// ---- arguments

// These write the arguments of the slice before.
void WriteCallArgs(const Launch& launch, TraceSink& sink);
void WriteRangeArgs(const Analysis& analysis, const NvtxRange& range, TraceSink& sink);
void WriteOverheadArgs(const Analysis& analysis, const DriverTime& overhead, TraceSink& sink);
void WriteWorkArgs(const Analysis& analysis, const GpuWork& work, TraceSink& sink);

// The arguments that samples of a kernel's code add to its slices.
class TraceGpuCode {
 public:
  // `analysis` must outlive this.
  explicit TraceGpuCode(Analysis& analysis) : samples_(analysis) {}

  // Writes arguments of the slice before. The numbers are those of all kernels of the name: a
  // sample does not say which one it is of.
  void WriteArgs(const GpuWork& work, TraceSink& sink);

 private:
  struct Texts {
    uint64_t samples = 0;
    std::string line;
    std::string stalls;
  };
  Texts MakeTexts(const CodeSamples::Functions& functions) const;

  CodeSamples samples_;
  std::map<const CodeSamples::Functions*, Texts> texts_;
};

}  // namespace xpu
