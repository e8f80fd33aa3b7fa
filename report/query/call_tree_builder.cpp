#include "report/query/call_tree_builder.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "format/base/text.h"
#include "report/analysis/sampled_events.h"
#include "report/base/flat_map.h"
#include "report/query/code_samples.h"
#include "report/query/gpu_idle.h"
#include "report/query/off_cpu_sums.h"
#include "report/query/off_cpu_waits.h"
#include "report/trace/user_probes.h"

namespace xpu {
namespace {

// Puts before a path what --by and --nvtx-frames ask for: the thread, process, stream, GPU, rank or
// host that its time belongs to, then the ranges that the program marked around it.
class PathGroups {
 public:
  // Both must outlive this; the paths are those of `tree`.
  PathGroups(Analysis& analysis, CallTree& tree, GroupBy by, bool nvtx_frames);

  // `path` below the frames of its group; `path` itself when nothing is to be put before it.
  PathId OfCpu(const Owner& owner, PathId path);
  PathId OfCall(const Launch& launch, PathId path);
  PathId OfWork(const GpuWork& work, PathId path);
  // For a GPU, but none of its streams: the time in which it had nothing to do, its memory.
  PathId OfGpu(uint32_t gpu, const Owner& owner, PathId path);

 private:
  FrameId FrameOf(const Owner& owner);
  std::string TitleOf(const Owner& owner) const;
  FrameId StreamOrDevice(const GpuWork& work);
  template <typename GroupOf>
  PathId InGroup(GroupOf group_of, PathId path) {
    if (by_ == GroupBy::kNothing) return path;
    return tree_.Graft(tree_.Child(PathId{}, group_of()), path, moved_);
  }
  PathId InRanges(const NvtxRanges::Around& around, PathId path);

  Analysis& analysis_;
  CallTree& tree_;
  const GroupBy by_;
  const bool nvtx_frames_;
  PerTrack<FrameId> tracks_;
  FlatMap<FrameId> streams_;  // by GPU and stream
  FlatMap<PathId> ranges_;    // by what is open around
  FlatMap<PathId> moved_;     // by prefix and path
};

bool IsOfCpu(GroupBy by) { return by != GroupBy::kStream && by != GroupBy::kDevice; }

PathGroups::PathGroups(Analysis& analysis, CallTree& tree, GroupBy by, bool nvtx_frames)
    : analysis_(analysis),
      tree_(tree),
      by_(by),
      nvtx_frames_(nvtx_frames && !analysis.nvtx.empty()) {}

FrameId PathGroups::FrameOf(const Owner& owner) {
  FrameId& frame = tracks_[owner.track];
  if (!frame) frame = analysis_.frames.Intern(TitleOf(owner));
  return frame;
}

std::string PathGroups::TitleOf(const Owner& owner) const {
  const Track& track = analysis_.tracks[owner.track];
  switch (by_) {
    case GroupBy::kThread:
      return analysis_.processes.ThreadTitle(owner.process, owner.tid);
    case GroupBy::kProcess:
      return analysis_.processes.ThreadTitle(owner.process, owner.pid);
    case GroupBy::kRank:
      return track.rank ? Format("rank{}", *track.rank) : "[no rank]";
    case GroupBy::kHost: {
      const std::string& host = analysis_.job.hosts()[track.host];
      return host.empty() ? "[unknown host]" : host;
    }
    case GroupBy::kContainer:
      return track.container == nullptr ? "[no container]"
                                        : analysis_.containers.NameOf(*track.container);
    case GroupBy::kNothing:
    case GroupBy::kStream:
    case GroupBy::kDevice:
      break;
  }
  return "[CPU]";
}

FrameId PathGroups::StreamOrDevice(const GpuWork& work) {
  const uint32_t stream = by_ == GroupBy::kStream ? work.stream_id : 0;
  FrameId& frame = streams_[uint64_t{work.gpu} << 32 | stream];
  if (!frame) {
    frame =
        analysis_.frames.Intern(by_ == GroupBy::kStream ? Format("GPU{}/stream{}", work.gpu, stream)
                                                        : Format("GPU{}", work.gpu));
  }
  return frame;
}

PathId PathGroups::InRanges(const NvtxRanges::Around& around, PathId path) {
  const uint64_t key = uint64_t{around.thread} << 32 | around.process;
  PathId prefix = ranges_.Get(key);
  if (!prefix) {
    const std::vector<uint32_t> all = analysis_.nvtx.RangesOf(around);
    const size_t outer = all.size() - std::min(all.size(), NvtxRanges::kMostShown);
    analysis_.call_trees.frames_left_out += outer;
    for (const uint32_t range : std::span(all).subspan(outer)) {
      const std::string label = analysis_.nvtx.LabelOf(analysis_.nvtx.all()[range]);
      prefix = tree_.Child(prefix, analysis_.frames.Intern("[NVTX]" + label));
    }
    if (!prefix) return path;
    ranges_[key] = prefix;
  }
  return tree_.Graft(prefix, path, moved_);
}

PathId PathGroups::OfCpu(const Owner& owner, PathId path) {
  if (nvtx_frames_) path = InRanges(analysis_.nvtx.At(owner.pid, owner.tid, owner.time_ns), path);
  return InGroup([&] { return FrameOf(owner); }, path);
}

PathId PathGroups::OfCall(const Launch& launch, PathId path) {
  if (nvtx_frames_) path = InRanges(analysis_.nvtx.At(launch), path);
  return InGroup([&] { return FrameOf(launch.owner()); }, path);
}

PathId PathGroups::OfWork(const GpuWork& work, PathId path) {
  if (nvtx_frames_ && work.launch != GpuWork::kNoLaunch) {
    path = InRanges(analysis_.nvtx.At(analysis_.correlation.launches[work.launch]), path);
  }
  return InGroup([&] { return IsOfCpu(by_) ? FrameOf(work.owner()) : StreamOrDevice(work); }, path);
}

PathId PathGroups::OfGpu(uint32_t gpu, const Owner& owner, PathId path) {
  const auto of_gpu = [&] { return analysis_.frames.Intern(Format("GPU{}", gpu)); };
  return InGroup([&] { return IsOfCpu(by_) ? FrameOf(owner) : of_gpu(); }, path);
}

// Adds what happened to the tree, each under its path and group.
class CallTreeBuilder {
 public:
  // `sliced`: nullptr, or what samples, hits of probes, calls and GPU work are added to as well.
  CallTreeBuilder(Analysis& analysis, const TreeOptions& options, CallPaths& paths,
                  SlicedTimes* sliced)
      : analysis_(analysis),
        paths_(paths),
        tree_(paths.tree()),
        device_tags_(options.device_tags),
        leaves_(analysis, options.kernel_names, options.device_tags),
        groups_(analysis, paths.tree(), options.by, options.nvtx_frames),
        sliced_(sliced) {}

  void AddSamples(bool count_only);
  void AddWork();
  void AddWithoutWork();
  void AddIdle();
  void AddMemory(MemoryView view);
  void AddProbeHits();
  void AddOffCpu(const SynchronizationCalls& gpu_calls);
  void AddRunning(const SynchronizationCalls& gpu_calls);

 private:
  void AddAt(uint32_t pid, uint64_t time_ns, PathId path, uint64_t ns) {
    tree_.Add(path, ns);
    if (sliced_ != nullptr) sliced_->Add(pid, time_ns, path, ns, 1);
  }

  Analysis& analysis_;
  CallPaths& paths_;
  CallTree& tree_;
  const bool device_tags_;
  GpuLeaves leaves_;
  PathGroups groups_;
  SlicedTimes* const sliced_;
};

void CallTreeBuilder::AddSamples(bool count_only) {
  const SampleWeights weights(analysis_.model, analysis_.shown);
  for (const Owned<CpuSample>& sample : analysis_.CpuSamples()) {
    const PathId path = groups_.OfCpu(sample.owner(), paths_.Of(sample));
    AddAt(sample.pid, sample.time_ns, path, count_only ? 1 : weights.Of(sample));
  }
}

void CallTreeBuilder::AddProbeHits() {
  const UserProbes probes(analysis_.model);
  std::unordered_map<const Probe*, FrameId> leaves;
  for (const Owned<ProbeHit>& hit : analysis_.ProbeHits()) {
    const Probe* probe = probes.Of(hit);
    if (probe == nullptr) continue;
    const auto [leaf, is_new] = leaves.try_emplace(probe);
    if (is_new) {
      leaf->second =
          analysis_.frames.Intern("[probe] " + probes.NameOf(*probe), FrameOrigin::kOther);
    }
    const PathId path = tree_.Child(paths_.Of(hit), leaf->second);
    AddAt(hit.pid, hit.time_ns, groups_.OfCpu(hit.owner(), path), 1);
  }
}

// In place of a reason: the thread waited for the GPU.
constexpr std::string_view kGpuWaitFrame = "[GPU wait]";

void CallTreeBuilder::AddRunning(const SynchronizationCalls& gpu_calls) {
  const FrameId gpu_wait = analysis_.frames.Intern(kGpuWaitFrame, FrameOrigin::kOther);
  const FrameId running = analysis_.frames.Intern("[running]", FrameOrigin::kOther);
  for (const RunningTime& thread : FindRunningTimes(analysis_)) {
    if (thread.parts.empty()) {
      const PathId path = tree_.Child(paths_.OfThread(thread.owner), running);
      tree_.Add(groups_.OfCpu(thread.owner, path), thread.total_ns);
    }
    for (const RunningTime::Part& part : thread.parts) {
      const Owned<CpuSample>& sample = analysis_.model.events.cpu_samples[part.sample];
      const Owner owner = sample.owner();
      PathId path = paths_.Of(sample);
      if (gpu_calls.IsInOne(owner, owner.time_ns)) path = tree_.Child(path, gpu_wait);
      tree_.Add(groups_.OfCpu(owner, path), part.ns);
    }
  }
}

void CallTreeBuilder::AddOffCpu(const SynchronizationCalls& gpu_calls) {
  const auto leaf = [this](const std::string& text) {
    return analysis_.frames.Intern("[off-CPU] " + text, FrameOrigin::kOther);
  };
  const FrameId runnable = leaf("runnable");
  const FrameId gpu_wait = analysis_.frames.Intern(kGpuWaitFrame, FrameOrigin::kOther);
  for (const Owned<OffCpuWait>& wait : analysis_.OffCpuWaits()) {
    const OffCpuTimes times = TimesOf(analysis_, wait);
    const PathId caller = paths_.OfWait(wait);
    const auto add = [&](FrameId frame, uint64_t duration_ns) {
      const PathId path = tree_.Child(caller, frame);
      tree_.Add(groups_.OfCpu(wait.owner(), path), duration_ns);
    };
    if (!IsWait(wait.state)) {
      add(leaf(WaitName(wait)), times.blocked_ns + times.runnable_ns);
      continue;
    }
    const bool is_for_gpu = gpu_calls.IsInOne(wait.owner(), wait.start_ns);
    add(is_for_gpu ? gpu_wait : leaf(WaitName(wait)), times.blocked_ns);
    if (times.runnable_ns > 0) add(runnable, times.runnable_ns);
  }
  for (const Owned<OffCpuSum>& sum : analysis_.OffCpuSums()) {
    if (sum.state == OffCpuState::kRunning) continue;
    const std::string text = Format("{}, short", StateName(sum.state));
    const PathId path = tree_.Child(paths_.OfSum(sum), leaf(text));
    tree_.Add(groups_.OfCpu(sum.owner(), path), sum.duration);
  }
}

void CallTreeBuilder::AddWork() {
  KernelParts parts(analysis_, tree_);
  for (const GpuWork& work : analysis_.Work()) {
    // A synchronization is the CPU waiting, not the GPU working.
    if (work.kind == WorkKind::kSynchronization) continue;
    const PathId path = groups_.OfWork(work, tree_.Child(paths_.OfWork(work), leaves_.Of(work)));
    const bool in_parts = work.kind == WorkKind::kKernel && parts.Take(work, path);
    if (!in_parts) tree_.Add(path, work.duration_ns);
    // Slices end at the kernel: how its samples divide within one is not known.
    if (sliced_ != nullptr && sliced_->is_by_time()) {
      sliced_->AddSpan(work.start_ns, work.duration_ns, path);
      continue;
    }
    if (sliced_ == nullptr || work.launch == GpuWork::kNoLaunch) continue;
    sliced_->Add(work.pid, work.called_ns, path, work.duration_ns, 1);
  }
  parts.Finish();
}

// There is no GPU time to show; the duration of the call makes the place visible.
void CallTreeBuilder::AddWithoutWork() {
  for (const Launch& launch : analysis_.Launches()) {
    const FrameId leaf = leaves_.InsteadOf(launch);
    if (!leaf) continue;
    const PathId path = tree_.Child(paths_.OfLaunch(launch), leaf);
    AddAt(launch.pid, launch.start_ns, groups_.OfCall(launch, path),
          launch.end_ns - launch.start_ns);
  }
}

void CallTreeBuilder::AddIdle() {
  IdlePaths idle(analysis_, paths_);
  IdleParts parts(analysis_, paths_);
  for (const IdleGap& gap : FindAllGaps(analysis_)) {
    const FrameId leaf = analysis_.frames.Intern(
        device_tags_ ? Format("[GPU{}_Idle]", gap.gpu) : "[GPU_Idle]", FrameOrigin::kPending);
    for (const IdlePart& part : parts.Of(gap)) {
      const PathId path = tree_.Child(idle.Of(part), leaf);
      tree_.Add(groups_.OfGpu(gap.gpu, idle.OwnerOf(part), path), part.ns);
    }
  }
}

// Whether an allocation of CUDA's own belongs to the view; to kPeak if it was there when the
// allocators of its GPU had most.
bool IsIn(MemoryView view, const MemoryAllocation& allocation, const Selection& shown,
          uint64_t peak_ns) {
  const auto was_there_at = [&](uint64_t time_ns) {
    return allocation.start_ns <= time_ns &&
           (allocation.end_ns == 0 || allocation.end_ns > time_ns);
  };
  switch (view) {
    case MemoryView::kPeak:
      return peak_ns == 0 ? allocation.at_peak : was_there_at(peak_ns);
    case MemoryView::kGrowth:
      return allocation.start_ns >= shown.from_ns && was_there_at(shown.to_ns - 1);
    case MemoryView::kLeft:
      return was_there_at(shown.to_ns - 1);
  }
  return false;
}

void CallTreeBuilder::AddMemory(MemoryView view) {
  const auto leaf = [this](uint32_t gpu, std::string_view what) {
    return analysis_.frames.Intern(
        device_tags_ ? Format("[GPU{}_Memory]{}", gpu, what) : Format("[GPU_Memory]{}", what),
        FrameOrigin::kGpuWork);
  };
  const AllocatorMemory memory(analysis_);
  for (const AllocatorBlock& block : memory.blocks()) {
    if (!memory.IsIn(view, block)) continue;
    const uint32_t gpu = memory.uses()[block.use].gpu;
    const PathId path = tree_.Child(paths_.Of(*block.event), leaf(gpu, "PyTorch"));
    tree_.Add(groups_.OfGpu(gpu, block.event->owner(), path),
              static_cast<uint64_t>(block.event->size_bytes));
  }
  std::unordered_map<uint32_t, const AllocatorUse*> most;  // by GPU
  for (const AllocatorUse& use : memory.uses()) {
    const AllocatorUse*& one = most[use.gpu];
    if (one == nullptr || use.peak_bytes > one->peak_bytes) one = &use;
    if (view != MemoryView::kPeak || use.earlier_bytes == 0) continue;
    const Owner owner = analysis_.tracks.OwnerAt(use.pid, use.pid, use.peak_ns);
    const FrameId earlier = analysis_.frames.Intern("[before the recording]", FrameOrigin::kOther);
    const PathId path =
        tree_.Child(tree_.Child(paths_.OfThread(owner), earlier), leaf(use.gpu, "PyTorch"));
    tree_.Add(groups_.OfGpu(use.gpu, owner, path), use.earlier_bytes);
  }
  for (const MemoryAllocation& allocation : FollowMemory(analysis_).allocations) {
    const MemoryOperation& operation = *allocation.operation;
    const auto one = most.find(allocation.gpu);
    const uint64_t peak_ns = one == most.end() ? 0 : one->second->peak_ns;
    if (!IsOfGpu(operation.memory_kind) || memory.IsReserve(operation)) continue;
    if (!IsIn(view, allocation, analysis_.shown, peak_ns)) continue;
    const uint32_t pid = analysis_.correlation.PidOf(operation.instance);
    Owner owner = analysis_.tracks.OwnerAt(pid, pid, allocation.start_ns);
    PathId path;
    if (allocation.launch == GpuWork::kNoLaunch) {
      path = tree_.Child(paths_.OfThread(owner), analysis_.frames.Intern("[unknown call]"));
    } else {
      const Launch& launch = analysis_.correlation.launches[allocation.launch];
      owner = launch.owner();
      path = paths_.OfLaunch(launch);
    }
    path = tree_.Child(path, leaf(allocation.gpu, MemoryKindText(operation.memory_kind)));
    tree_.Add(groups_.OfGpu(allocation.gpu, owner, path), operation.size_bytes);
  }
}

TreeMode ModeOf(const Analysis& analysis, TreeMode asked) {
  if (asked != TreeMode::kCpuAndGpu || SamplesCountTime(analysis.model, analysis.shown))
    return asked;
  const bool has_gpu = !analysis.Work().empty() || !analysis.Launches().empty();
  return has_gpu && !analysis.event_is_asked_for ? TreeMode::kGpu : TreeMode::kCpu;
}

}  // namespace

CallTree BuildCallTree(Analysis& analysis, const TreeOptions& options, SlicedTimes* sliced) {
  const TreeMode mode = ModeOf(analysis, options.mode);
  const bool cpu = mode == TreeMode::kCpuAndGpu || mode == TreeMode::kCpu;
  const bool gpu = mode == TreeMode::kCpuAndGpu || mode == TreeMode::kGpu;
  CallPaths paths(analysis, options.paths);
  const bool idle =
      mode == TreeMode::kIdle || (options.with_idle && options.mode == TreeMode::kCpuAndGpu);
  const bool wall = mode == TreeMode::kWall;
  paths.NameAhead({.samples = cpu || idle || wall,
                   .others_samples = idle,
                   .launches = gpu || idle || mode == TreeMode::kMemory,
                   .probe_hits = mode == TreeMode::kProbe,
                   .off_cpu_waits = mode == TreeMode::kOff || wall,
                   .blocks = mode == TreeMode::kMemory});
  CallTreeBuilder builder(analysis, options, paths, sliced);
  if (mode == TreeMode::kProbe) builder.AddProbeHits();
  if (mode == TreeMode::kMemory) builder.AddMemory(options.memory);
  if (mode == TreeMode::kOff || wall) {
    const SynchronizationCalls gpu_calls(analysis);
    builder.AddOffCpu(gpu_calls);
    if (wall) builder.AddRunning(gpu_calls);
  }
  if (cpu) builder.AddSamples(options.count_samples);
  if (gpu) builder.AddWork();
  // Not in the mode that shows GPU time only: its lines add up to the GPU's own durations.
  if (cpu && gpu) builder.AddWithoutWork();
  if (idle) builder.AddIdle();
  // Hits of probes and idle time are of the whole capture (options.cpp).
  paths.tree().Multiply(analysis.shown.scale);
  if (sliced != nullptr) sliced->Multiply(analysis.shown.scale);
  return std::move(paths.tree());
}

bool TakesSlices(TreeMode mode) {
  return mode == TreeMode::kCpuAndGpu || mode == TreeMode::kGpu || mode == TreeMode::kCpu ||
         mode == TreeMode::kProbe;
}

bool CountsTime(const Analysis& analysis, const TreeOptions& options) {
  const TreeMode mode = ModeOf(analysis, options.mode);
  if (mode == TreeMode::kProbe || mode == TreeMode::kMemory) return false;
  return mode == TreeMode::kGpu || mode == TreeMode::kIdle || mode == TreeMode::kOff ||
         mode == TreeMode::kWall || mode == TreeMode::kCritical ||
         SamplesCountTime(analysis.model, analysis.shown);
}

std::string EstimateText(const CallTree& tree) {
  const uint64_t kernels = tree.kernels_by_estimate;
  if (kernels == 0) return {};
  return Format(
      "{} {} launched from several call paths: the time of {} lines is an estimate there, "
      "as samples do not name the launch\n",
      kernels, kernels == 1 ? "kernel with samples is" : "kernels with samples are",
      kernels == 1 ? "its" : "their");
}

std::string LeftOutText(const Analysis& analysis, const TreeOptions& options) {
  const LoadedEvents& events = analysis.model.events;
  if (options.mode == TreeMode::kWall && events.off_cpu_sums.empty() &&
      events.off_cpu_waits.empty()) {
    return "the capture has no off-CPU time: only CPU samples are shown\n"
           "  hint: xpu-record --off-cpu records it\n";
  }
  const bool shows_samples = options.mode != TreeMode::kProbe &&
                             options.mode != TreeMode::kMemory && !CountsTime(analysis, options);
  const std::string uncounted = shows_samples ? UncountedText(analysis.model, analysis.shown) : "";
  if (options.mode != TreeMode::kCpuAndGpu || SamplesCountTime(analysis.model, analysis.shown))
    return uncounted;
  const std::string name = SampleUnitName(analysis.model, analysis.shown);
  if (ModeOf(analysis, options.mode) == TreeMode::kGpu) {
    return Format(
        "CPU samples are left out: they count {}, not time\n"
        "  hint: --event {} shows them\n",
        name, name);
  }
  return uncounted +
         (analysis.Work().empty()
              ? std::string()
              : Format("GPU time is left out: the CPU samples count {}, not time\n", name));
}

}  // namespace xpu
