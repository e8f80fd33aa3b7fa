// What lies below a kernel in a call tree: inlined functions, source lines and what warps waited
// for, each with its share of the kernel's time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/query/code_samples.h"

namespace xpu {

class KernelParts {
 public:
  // Both must outlive this.
  KernelParts(Analysis& analysis, CallTree& tree);

  // Takes the time of a kernel whose frame ends `path`. False: it has no samples, and its time is
  // the caller's to add.
  bool Take(const GpuWork& kernel, PathId path);
  // Adds what was taken to the tree.
  void Finish();

 private:
  struct Part {
    std::vector<FrameId> frames;  // outermost first
    uint64_t samples = 0;
  };
  using Parts = std::vector<Part>;

  const Parts& PartsOf(const CodeSamples::Functions& functions);
  std::vector<FrameId> FramesOf(const SampledFunction& function, const SampledInstruction& at);

  Analysis& analysis_;
  CallTree& tree_;
  CodeSamples samples_;
  std::map<const CodeSamples::Functions*, Parts> parts_;
  std::map<std::pair<uint32_t, const Parts*>, uint64_t> taken_ns_;  // by path
};

// "softmax.cu:42"; "?" where it is not known.
std::string ShortPlaceOf(const SourceFrame& frame);
// "[stall] long scoreboard", "[selected]"
std::string StallFrameName(std::string_view stall);

}  // namespace xpu
