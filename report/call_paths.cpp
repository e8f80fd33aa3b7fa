#include "report/call_paths.h"

#include "report/launch_frames.h"

namespace xpu {

Owner OwnerOf(const Analysis& analysis, const CpuSample& sample) {
  return {.process = analysis.processes.At(sample.pid, sample.time_ns),
          .tid = sample.tid,
          .time_ns = sample.time_ns};
}

Owner OwnerOf(const Analysis& analysis, const Launch& launch) {
  return {.process = analysis.processes.At(launch.pid, launch.start_ns),
          .tid = launch.tid,
          .time_ns = launch.start_ns};
}

Owner OwnerOf(const Analysis& analysis, const GpuWork& work) {
  if (work.launch != GpuWork::kNoLaunch) {
    return OwnerOf(analysis, analysis.correlation.launches[work.launch]);
  }
  const auto found = analysis.correlation.processes.find(work.instance);
  const uint32_t pid = found == analysis.correlation.processes.end() ? 0 : found->second.pid;
  return {
      .process = analysis.processes.At(pid, work.start_ns), .tid = pid, .time_ns = work.start_ns};
}

CallPaths::ContextId CallPaths::Intern(const Context& context) {
  const auto next = static_cast<uint32_t>(contexts_.size() + 1);
  return contexts_.try_emplace(context, ContextId{next}).first->second;
}

CallPaths::CallPaths(Analysis& analysis, bool keep_internal_frames)
    : analysis_(analysis),
      keep_internal_frames_(keep_internal_frames),
      unknown_(analysis.frames.Intern("[unknown]")),
      unknown_launch_(analysis.frames.Intern("[unknown launch]")) {}

FrameId CallPaths::Comm(const Owner& owner) {
  const std::string_view name =
      analysis_.processes.ThreadName(owner.process, owner.tid, owner.time_ns);
  if (name.empty()) return unknown_;
  const auto [at, is_new] = comms_.try_emplace(name);
  if (is_new) at->second = analysis_.frames.Intern(name);
  return at->second;
}

PathId CallPaths::AddFrames(PathId path, std::span<const FrameId> innermost_first) {
  for (auto frame = innermost_first.rbegin(); frame != innermost_first.rend(); ++frame) {
    path = tree_.Child(path, *frame);
  }
  return path;
}

PathId CallPaths::OfSample(const CpuSample& sample) {
  const Owner owner = OwnerOf(analysis_, sample);
  const SpaceId space = analysis_.processes.SpaceAt(owner.process, owner.time_ns);
  const FrameId comm = Comm(owner);
  const uint64_t key = KeyOf(sample.stack, Intern({space, comm, FrameId{}}));
  if (const PathId known = paths_.Get(key)) return known;
  const ResolvedStack stack = analysis_.resolver.Resolve(sample.stack, space, owner.time_ns);
  PathId path = tree_.Child(PathId{}, comm);
  path = stack.frames.empty() ? tree_.Child(path, unknown_) : AddFrames(path, stack.frames);
  if (stack.at_any_time) paths_[key] = path;
  return path;
}

PathId CallPaths::UnknownLaunch(const Owner& owner, FrameId api) {
  PathId path = tree_.Child(PathId{}, Comm(owner));
  path = tree_.Child(path, unknown_launch_);
  return api ? tree_.Child(path, api) : path;
}

PathId CallPaths::OfLaunch(const Launch& launch) {
  const Owner owner = OwnerOf(analysis_, launch);
  const FrameId api = analysis_.frames.Intern(
      analysis_.api_names.Of(launch.instance, launch.domain, launch.callback_id));
  if (!launch.stack) return UnknownLaunch(owner, api);

  const SpaceId space = analysis_.processes.SpaceAt(owner.process, owner.time_ns);
  const FrameId comm = Comm(owner);
  const uint64_t key = KeyOf(launch.stack, Intern({space, comm, api}));
  if (const PathId known = paths_.Get(key)) return known;
  const ResolvedStack stack = analysis_.resolver.Resolve(launch.stack, space, owner.time_ns);
  std::span<const FrameId> frames = stack.frames;
  if (!keep_internal_frames_) {
    frames = frames.subspan(CountInternalFrames(frames, analysis_.frames));
  }
  const PathId path = tree_.Child(AddFrames(tree_.Child(PathId{}, comm), frames), api);
  if (stack.at_any_time) paths_[key] = path;
  return path;
}

PathId CallPaths::OfWork(const GpuWork& work) {
  if (work.launch == GpuWork::kNoLaunch) {
    return UnknownLaunch(OwnerOf(analysis_, work), FrameId{});
  }
  return OfLaunch(analysis_.correlation.launches[work.launch]);
}

}  // namespace xpu
