// Where in their code kernels spend their time, and what their warps wait for there: samples of the
// GPU's program counters, joined with the kernels that ran.
//
// A sample names a function of a module, not the launch. So the time of all kernels of a name is
// divided by all samples of that name, in one process and context: with several call paths, or
// several modules that have a kernel of the name, that is an estimate for each of them. The parts
// add up to the kernel's time exactly.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/stacks/gpu_code.h"

namespace xpu {

// "wait" of "smsp__pcsamp_warps_issue_stalled_wait". Of a name ending in "_not_issued" it is the
// same: those samples of that reason in which the scheduler had no other warp to issue from.
struct StallName {
  std::string name;
  bool is_not_issued = false;
};
StallName StallNameOf(std::string_view cupti_name);
// The meaning of a stall, and what usually helps; empty: it is not known.
struct StallAdvice {
  std::string_view meaning;
  std::string_view hint;
};
StallAdvice AdviceOf(std::string_view stall);
// Both, as views show them after the reason: "waits at a memory fence. Narrower scopes, fewer
// fences".
std::string AdviceText(std::string_view stall);
// The warp issued an instruction, or could have: it did not wait.
bool IsIssuing(std::string_view stall);

struct CodeCount {
  uint64_t samples = 0;
  uint64_t not_issued = 0;  // of these
  uint64_t ns = 0;          // of the kernel's time
};

struct SampledInstruction {
  uint64_t offset = 0;
  std::vector<SourceFrame> lines;  // as GpuCode::LinesOf
  std::map<std::string, CodeCount> stalls;

  uint64_t samples() const;
};

// A function in one context: a kernel, or one that kernels call.
struct SampledFunction {
  InstanceId instance;
  uint32_t context_id = 0;
  uint64_t cubin_crc = 0;
  std::string_view name;  // mangled
  // A function that is called and not inlined lies in its kernel's code, as "$kernel$function".
  std::string_view kernel;                       // mangled; `name` itself
  std::string_view callee;                       // likewise; empty: it is the kernel
  std::vector<SampledInstruction> instructions;  // by offset
  uint64_t samples = 0;
  // Time and count of kernels of this name; 0: there is none.
  uint64_t kernel_ns = 0;
  uint64_t kernel_count = 0;
};

class CodeSamples {
 public:
  // Without lines, which take some milliseconds for each module, it knows no lines and functions.
  explicit CodeSamples(Analysis& analysis, bool with_lines = true);

  bool empty() const { return functions_.empty(); }
  // Most samples first.
  const std::vector<SampledFunction>& functions() const { return functions_; }
  GpuCode& code() { return *code_; }

  // The functions that have the kernel's name, by their places in functions(); empty: no sample is
  // in any. `kernel`: by place.
  using Functions = std::vector<uint32_t>;
  const Functions& Of(size_t kernel);

 private:
  using Key = std::tuple<uint64_t, uint32_t, std::string_view>;  // instance, context, name

  void LeaveKernelsShown();
  void AddSamples();
  void AddLines();
  void AddKernelTimes();

  Analysis& analysis_;
  std::unique_ptr<GpuCode> code_;
  std::vector<SampledFunction> functions_;
  std::map<Key, Functions> by_kernel_;
  std::map<std::tuple<uint64_t, uint32_t, StringId>, const Functions*> known_;
};

// `ns` in proportion to `weights`, by the largest remainders: the parts add up to it. All are 0
// where the weights are.
std::vector<uint64_t> DivideByWeights(uint64_t ns, std::span<const uint64_t> weights);

// The frames below a kernel in a call tree: inlined functions, source lines and what warps waited
// for, each with its share of the kernel's time.
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
