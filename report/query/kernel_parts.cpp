#include "report/query/kernel_parts.h"

#include "format/base/text.h"
#include "symbolize/demangle.h"

namespace xpu {

std::string ShortPlaceOf(const SourceFrame& frame) {
  std::string_view file = frame.file;
  if (const size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  if (file.empty()) return "?";
  return frame.line == 0 ? std::string(file) : Format("{}:{}", file, frame.line);
}

std::string StallFrameName(std::string_view stall) {
  return IsIssuing(stall) ? Format("[{}]", stall) : Format("[stall] {}", stall);
}

KernelParts::KernelParts(Analysis& analysis, CallTree& tree)
    : analysis_(analysis), tree_(tree), samples_(analysis) {}

std::vector<FrameId> KernelParts::FramesOf(const SampledFunction& function,
                                           const SampledInstruction& at) {
  std::vector<FrameId> frames;
  const auto add = [&](const std::string& name) {
    frames.push_back(analysis_.frames.Intern(name, FrameOrigin::kGpuWork));
  };
  if (!function.callee.empty()) add(Demangle(function.callee));
  if (at.lines.empty()) return frames;
  for (size_t i = at.lines.size() - 1; i-- > 0;) {
    add(at.lines[i].function.empty() ? "[inlined]" : Demangle(at.lines[i].function));
  }
  add(ShortPlaceOf(at.lines.front()));
  return frames;
}

const KernelParts::Parts& KernelParts::PartsOf(const CodeSamples::Functions& functions) {
  const auto [found, is_new] = parts_.try_emplace(&functions);
  if (!is_new) return found->second;
  std::map<std::vector<FrameId>, uint64_t> sums;
  for (const uint32_t place : functions) {
    const SampledFunction& function = samples_.functions()[place];
    for (const SampledInstruction& at : function.instructions) {
      std::vector<FrameId> frames = FramesOf(function, at);
      frames.emplace_back();
      for (const auto& [stall, count] : at.stalls) {
        if (count.samples == 0) continue;
        frames.back() = analysis_.frames.Intern(StallFrameName(stall), FrameOrigin::kGpuWork);
        sums[frames] += count.samples;
      }
    }
  }
  for (const auto& [frames, samples] : sums) found->second.push_back({frames, samples});
  return found->second;
}

bool KernelParts::Take(const GpuWork& kernel, PathId path) {
  if (samples_.empty()) return false;
  const CodeSamples::Functions& functions = samples_.Of(kernel.index);
  if (functions.empty()) return false;
  const Parts& parts = PartsOf(functions);
  if (parts.empty()) return false;
  taken_ns_[{path.value, &parts}] += kernel.duration_ns;
  tree_.Add(path, 0);
  return true;
}

void KernelParts::Finish() {
  analysis_.kernels_by_estimate = 0;
  std::map<const Parts*, uint64_t> paths_of;
  std::vector<uint64_t> weights;
  // Of a capture that was made to have many parts in many paths.
  uint64_t left = analysis_.call_trees.max_nodes;
  for (const auto& [where, ns] : taken_ns_) {
    const auto& [path, parts] = where;
    if (parts->size() > left) {
      ++analysis_.call_trees.frames_left_out;
      tree_.Add(PathId{path}, ns, 0);
      continue;
    }
    left -= parts->size();
    ++paths_of[parts];
    weights.clear();
    for (const Part& part : *parts) weights.push_back(part.samples);
    const std::vector<uint64_t> divided = DivideByWeights(ns, weights);
    for (size_t i = 0; i < divided.size(); ++i) {
      if (divided[i] == 0) continue;
      PathId inner{path};
      for (const FrameId frame : (*parts)[i].frames) inner = tree_.Child(inner, frame);
      tree_.Add(inner, divided[i], 0);
    }
  }
  for (const auto& [parts, paths] : paths_of) {
    if (paths > 1) ++analysis_.kernels_by_estimate;
  }
}

}  // namespace xpu
