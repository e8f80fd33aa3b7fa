#include "report/merge.h"

#include <unordered_map>
#include <utility>

#include "report/launched_kernel.h"

namespace xpu {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kDefaultHz = 99;

void AddSamples(const Analysis& analysis, CallPaths& paths) {
  std::unordered_map<uint32_t, uint64_t> weights;
  for (const CpuSample& sample : analysis.model.events.cpu_samples) {
    const auto [weight, is_new] = weights.try_emplace(sample.source);
    if (is_new) weight->second = SampleWeightNs(analysis.model, sample.source);
    paths.tree().Add(paths.OfSample(sample), weight->second);
  }
}

void AddWork(Analysis& analysis, const GpuNames& names, CallPaths& paths) {
  // By name and GPU.
  std::unordered_map<uint64_t, FrameId> kernel_leaves;
  const auto leaf_of = [&](const GpuWork& work) {
    if (work.kind != WorkKind::kKernel) return analysis.frames.Intern(names.Leaf(work));
    const uint64_t name = analysis.model.events.kernels[work.index].name.value;
    const uint32_t gpu = analysis.gpus.Of(work.instance, work.device_id).number;
    const auto [at, is_new] = kernel_leaves.try_emplace(name << 32 | gpu);
    if (is_new) at->second = analysis.frames.Intern(names.Leaf(work));
    return at->second;
  };
  for (const GpuWork& work : analysis.correlation.work) {
    // A synchronisation is the CPU waiting, not the GPU working.
    if (work.kind == WorkKind::kSynchronization) continue;
    const PathId path = paths.OfWork(work);
    paths.tree().Add(paths.tree().Child(path, leaf_of(work)), work.duration_ns);
  }
}

// There is no GPU time to show; the duration of the call makes the place visible.
void AddWithoutWork(Analysis& analysis, const GpuNames& names, CallPaths& paths) {
  const FrameId pending = analysis.frames.Intern("[GPU_Launch_Pending]");
  for (const Launch& launch : analysis.correlation.launches) {
    FrameId leaf = pending;
    const LaunchFate fate = FateOf(launch);
    if (fate == LaunchFate::kProbed) {
      leaf = analysis.frames.Intern("[GPU_Launch]" + LaunchedKernel(analysis, names, launch));
    } else if (fate != LaunchFate::kUnmatched) {
      continue;
    }
    const PathId path = paths.OfLaunch(launch);
    paths.tree().Add(paths.tree().Child(path, leaf), launch.end_ns - launch.start_ns);
  }
}

}  // namespace

CallTree BuildCallTree(Analysis& analysis, const MergeOptions& options) {
  CallPaths paths(analysis, options.paths);
  const GpuNames names(analysis, options.kernel_names, options.device_tags);
  paths.NameAhead(options.mode != MergeMode::kGpu, options.mode != MergeMode::kCpu);
  if (options.mode != MergeMode::kGpu) AddSamples(analysis, paths);
  if (options.mode != MergeMode::kCpu) AddWork(analysis, names, paths);
  // Not in the mode that shows GPU time only: its lines add up to the GPU's own durations.
  if (options.mode == MergeMode::kMerge) AddWithoutWork(analysis, names, paths);
  return std::move(paths.tree());
}

uint64_t SampleWeightNs(const Model& model, uint32_t source) {
  for (const SampleSource& known : model.events.sample_sources) {
    if (known.source != source) continue;
    if (known.period != 0 && model.Text(known.unit) == "ns") return known.period;
    if (known.frequency_hz != 0) return kSecondNs / known.frequency_hz;
  }
  return kSecondNs / kDefaultHz;
}

uint64_t SampleUnitNs(const Model& model) {
  const auto& sources = model.events.sample_sources;
  const uint64_t unit = SampleWeightNs(model, sources.empty() ? 0 : sources.front().source);
  return unit == 0 ? 1 : unit;
}

}  // namespace xpu
