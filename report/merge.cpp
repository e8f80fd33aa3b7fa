#include "report/merge.h"

#include <unordered_map>
#include <utility>

#include "format/base/text.h"
#include "report/gpu_idle.h"
#include "report/gpu_leaves.h"
#include "report/path_groups.h"

namespace xpu {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kDefaultHz = 99;

// Adds what happened to the tree, each under its path and group.
class Merge {
 public:
  Merge(Analysis& analysis, const MergeOptions& options, CallPaths& paths)
      : analysis_(analysis),
        paths_(paths),
        tree_(paths.tree()),
        device_tags_(options.device_tags),
        leaves_(analysis, options.kernel_names, options.device_tags),
        groups_(analysis, paths.tree(), options.by) {}

  void AddSamples();
  void AddWork();
  void AddWithoutWork();
  void AddIdle();

 private:
  Analysis& analysis_;
  CallPaths& paths_;
  CallTree& tree_;
  const bool device_tags_;
  GpuLeaves leaves_;
  PathGroups groups_;
};

void Merge::AddSamples() {
  std::unordered_map<uint32_t, uint64_t> weights;
  for (const CpuSample& sample : analysis_.model.events.cpu_samples) {
    const auto [weight, is_new] = weights.try_emplace(sample.source);
    if (is_new) weight->second = SampleWeightNs(analysis_.model, sample.source);
    const PathId path = groups_.OfCpu(OwnerOf(analysis_, sample), paths_.OfSample(sample));
    tree_.Add(path, weight->second);
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
    tree_.Add(groups_.OfCpu(OwnerOf(analysis_, launch), path), launch.end_ns - launch.start_ns);
  }
}

void Merge::AddIdle() {
  IdlePaths idle(analysis_, paths_);
  for (const IdlePart& part : FindIdleParts(analysis_)) {
    const FrameId leaf = analysis_.frames.Intern(
        device_tags_ ? Format("[GPU{}_Idle]", part.gpu) : "[GPU_Idle]", FrameOrigin::kPending);
    const PathId path = tree_.Child(idle.Of(part), leaf);
    tree_.Add(groups_.OfIdle(part.gpu, idle.OwnerOf(part), path), part.ns);
  }
}

}  // namespace

CallTree BuildCallTree(Analysis& analysis, const MergeOptions& options) {
  const bool cpu = options.mode == MergeMode::kMerge || options.mode == MergeMode::kCpu;
  const bool gpu = options.mode == MergeMode::kMerge || options.mode == MergeMode::kGpu;
  CallPaths paths(analysis, options.paths);
  const bool idle = options.mode == MergeMode::kIdle;
  paths.NameAhead(cpu || idle, gpu || idle);
  Merge merge(analysis, options, paths);
  if (cpu) merge.AddSamples();
  if (gpu) merge.AddWork();
  // Not in the mode that shows GPU time only: its lines add up to the GPU's own durations.
  if (cpu && gpu) merge.AddWithoutWork();
  if (idle) merge.AddIdle();
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
