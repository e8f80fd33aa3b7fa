// What the slices of a trace are called. Names that occur often are made once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
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

}  // namespace xpu
