#include "report/query/merge.h"

#include <unordered_map>
#include <utility>

#include "format/base/text.h"
#include "report/analysis/gpu_leaves.h"
#include "report/analysis/sampled_events.h"
#include "report/query/gpu_idle.h"
#include "report/trace/user_probes.h"

namespace xpu {
namespace {

// Adds what happened to the tree, each under its path and group.
class Merge {
 public:
  Merge(Analysis& analysis, const MergeOptions& options, CallPaths& paths)
      : analysis_(analysis),
        paths_(paths),
        tree_(paths.tree()),
        device_tags_(options.device_tags),
        leaves_(analysis, options.kernel_names, options.device_tags),
        groups_(analysis, paths.tree(), options.by, options.nvtx_frames) {}

  void AddSamples(bool count_only);
  void AddWork();
  void AddWithoutWork();
  void AddIdle();
  void AddProbeHits();

 private:
  Analysis& analysis_;
  CallPaths& paths_;
  CallTree& tree_;
  const bool device_tags_;
  GpuLeaves leaves_;
  PathGroups groups_;
};

void Merge::AddSamples(bool count_only) {
  const SampleWeights weights(analysis_.model);
  for (const CpuSample& sample : analysis_.model.events.cpu_samples) {
    PathId path = paths_.OfSample(sample);
    if (!groups_.IsNone()) path = groups_.OfCpu(OwnerOf(analysis_, sample), path);
    tree_.Add(path, count_only ? 1 : weights.Of(sample));
  }
}

void Merge::AddProbeHits() {
  const UserProbes probes(analysis_.model);
  std::unordered_map<const Probe*, FrameId> leaves;
  for (const ProbeHit& hit : analysis_.model.events.probe_hits) {
    const Probe* probe = probes.Of(hit);
    if (probe == nullptr) continue;
    const auto [leaf, is_new] = leaves.try_emplace(probe);
    if (is_new) {
      leaf->second =
          analysis_.frames.Intern("[probe] " + probes.NameOf(*probe), FrameOrigin::kOther);
    }
    const PathId path = tree_.Child(paths_.OfHit(hit), leaf->second);
    tree_.Add(groups_.OfCpu(OwnerOf(analysis_, hit), path), 1);
  }
}

void Merge::AddWork() {
  for (const GpuWork& work : analysis_.correlation.work) {
    // A synchronisation is the CPU waiting, not the GPU working.
    if (work.kind == WorkKind::kSynchronization) continue;
    const PathId path = tree_.Child(paths_.OfWork(work), leaves_.Of(work));
    tree_.Add(groups_.OfWork(work, path), work.duration_ns);
  }
}

// There is no GPU time to show; the duration of the call makes the place visible.
void Merge::AddWithoutWork() {
  for (const Launch& launch : analysis_.correlation.launches) {
    const FrameId leaf = leaves_.InsteadOf(launch);
    if (!leaf) continue;
    const PathId path = tree_.Child(paths_.OfLaunch(launch), leaf);
    tree_.Add(groups_.OfCall(launch, path), launch.end_ns - launch.start_ns);
  }
}

void Merge::AddIdle() {
  IdlePaths idle(analysis_, paths_);
  IdleParts parts(analysis_, paths_);
  for (const IdleGap& gap : FindAllGaps(analysis_)) {
    const FrameId leaf = analysis_.frames.Intern(
        device_tags_ ? Format("[GPU{}_Idle]", gap.gpu) : "[GPU_Idle]", FrameOrigin::kPending);
    for (const IdlePart& part : parts.Of(gap)) {
      const PathId path = tree_.Child(idle.Of(part), leaf);
      tree_.Add(groups_.OfIdle(gap.gpu, idle.OwnerOf(part), path), part.ns);
    }
  }
}

MergeMode ModeOf(const Analysis& analysis, MergeMode asked) {
  if (asked != MergeMode::kMerge || SamplesCountTime(analysis.model)) return asked;
  const bool has_gpu = !analysis.correlation.work.empty() || !analysis.correlation.launches.empty();
  return has_gpu && !analysis.event_is_asked_for ? MergeMode::kGpu : MergeMode::kCpu;
}

}  // namespace

CallTree BuildCallTree(Analysis& analysis, const MergeOptions& options) {
  const MergeMode mode = ModeOf(analysis, options.mode);
  const bool cpu = mode == MergeMode::kMerge || mode == MergeMode::kCpu;
  const bool gpu = mode == MergeMode::kMerge || mode == MergeMode::kGpu;
  CallPaths paths(analysis, options.paths);
  const bool idle = mode == MergeMode::kIdle;
  paths.NameAhead({.samples = cpu || idle,
                   .samples_left_out = idle,
                   .launches = gpu || idle,
                   .probe_hits = mode == MergeMode::kProbe});
  Merge merge(analysis, options, paths);
  if (mode == MergeMode::kProbe) merge.AddProbeHits();
  if (cpu) merge.AddSamples(options.count_samples);
  if (gpu) merge.AddWork();
  // Not in the mode that shows GPU time only: its lines add up to the GPU's own durations.
  if (cpu && gpu) merge.AddWithoutWork();
  if (idle) merge.AddIdle();
  // Hits of probes and idle time are of the whole capture (options.cpp).
  paths.tree().Multiply(analysis.kept_of);
  return std::move(paths.tree());
}

bool CountsTime(const Analysis& analysis, const MergeOptions& options) {
  const MergeMode mode = ModeOf(analysis, options.mode);
  if (mode == MergeMode::kProbe) return false;
  return mode == MergeMode::kGpu || mode == MergeMode::kIdle || SamplesCountTime(analysis.model);
}

std::string LeftOutText(const Analysis& analysis, const MergeOptions& options) {
  const bool shows_samples = options.mode != MergeMode::kProbe && !CountsTime(analysis, options);
  const std::string uncounted = shows_samples ? UncountedText(analysis.model) : "";
  if (options.mode != MergeMode::kMerge || SamplesCountTime(analysis.model)) return uncounted;
  const std::string name = SampleUnitName(analysis.model);
  if (ModeOf(analysis, options.mode) == MergeMode::kGpu) {
    return Format(
        "CPU samples count {}, which is no time, and are left out\n"
        "  hint: --event {} shows them\n",
        name, name);
  }
  return uncounted + (analysis.correlation.work.empty()
                          ? std::string()
                          : Format("GPU time is left out: the CPU samples count {}\n", name));
}

}  // namespace xpu
