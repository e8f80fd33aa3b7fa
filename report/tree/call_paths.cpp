#include "report/tree/call_paths.h"

#include "report/correlate/launch_frames.h"
#include "report/correlate/user_probes.h"

namespace xpu {

uint32_t PidOf(const Analysis& analysis, InstanceId instance) {
  const auto found = analysis.correlation.processes.find(instance);
  return found == analysis.correlation.processes.end() ? 0 : found->second.pid;
}

Owner OwnerOf(const Analysis& analysis, const CpuSample& sample) {
  return {.process = analysis.processes.At(sample.pid, sample.time_ns),
          .pid = sample.pid,
          .tid = sample.tid,
          .time_ns = sample.time_ns};
}

Owner OwnerOf(const Analysis& analysis, const ProbeHit& hit) {
  return {.process = analysis.processes.At(hit.pid, hit.time_ns),
          .pid = hit.pid,
          .tid = hit.tid,
          .time_ns = hit.time_ns};
}

Owner OwnerOf(const Analysis& analysis, const Launch& launch) {
  return {.process = analysis.processes.At(launch.pid, launch.start_ns),
          .pid = launch.pid,
          .tid = launch.tid,
          .time_ns = launch.start_ns};
}

Owner OwnerOf(const Analysis& analysis, const GpuWork& work) {
  if (work.launch != GpuWork::kNoLaunch) {
    return OwnerOf(analysis, analysis.correlation.launches[work.launch]);
  }
  const uint32_t pid = PidOf(analysis, work.instance);
  return {.process = analysis.processes.At(pid, work.start_ns),
          .pid = pid,
          .tid = pid,
          .time_ns = work.start_ns};
}

Owner OwnerOf(const Analysis& analysis, const NvtxRange& range) {
  const uint32_t pid = PidOf(analysis, range.event->instance);
  return {.process = analysis.processes.At(pid, range.start_ns),
          .pid = pid,
          .tid = range.event->tid,
          .time_ns = range.start_ns};
}

CallPaths::ContextId CallPaths::Intern(const Context& context) {
  const auto next = static_cast<uint32_t>(contexts_.size() + 1);
  return contexts_.try_emplace(context, ContextId{next}).first->second;
}

CallPaths::CallPaths(Analysis& analysis, const PathOptions& options)
    : analysis_(analysis),
      options_(options),
      tree_(analysis.call_trees),
      unknown_(analysis.frames.Intern("[unknown]")),
      unknown_launch_(analysis.frames.Intern("[unknown launch]")),
      captured_at_(analysis.frames.Intern("[captured at]")),
      before_recording_(analysis.frames.Intern("[before the recording]")) {}

void CallPaths::NameAhead(const Stacks& stacks) {
  WantAll(stacks);
  analysis_.symbolizer.NameWanted();
}

void CallPaths::WantAll(const Stacks& stacks) {
  const auto want = [&](StackId stack, const Owner& owner) {
    analysis_.resolver.Want(stack, analysis_.processes.SpaceAt(owner.process, owner.time_ns),
                            owner.time_ns);
  };
  if (stacks.samples) {
    for (const CpuSample& sample : analysis_.model.events.cpu_samples) {
      want(sample.stack, OwnerOf(analysis_, sample));
    }
  }
  if (stacks.probe_hits) {
    const UserProbes probes(analysis_.model);
    for (const ProbeHit& hit : analysis_.model.events.probe_hits) {
      if (hit.stack && probes.Of(hit) != nullptr) want(hit.stack, OwnerOf(analysis_, hit));
    }
  }
  if (stacks.launches) {
    for (const Launch& launch : analysis_.correlation.launches) {
      if (launch.stack) want(launch.stack, OwnerOf(analysis_, launch));
    }
  }
}

FrameId CallPaths::Comm(const Owner& owner) {
  const StringId name = analysis_.processes.NameAt(owner.process, owner.tid, owner.time_ns);
  FrameId& comm = comms_[name.value];
  if (!comm) {
    const std::string_view text = analysis_.model.Text(name);
    comm = text.empty() ? unknown_ : analysis_.frames.Intern(text);
  }
  return comm;
}

FrameId CallPaths::FrameOf(ApiNameId call) {
  if (api_frames_.size() < call.value) api_frames_.resize(call.value);
  FrameId& frame = api_frames_[call.value - 1];
  if (!frame) {
    frame = analysis_.frames.Intern(analysis_.api_names.Text(call), FrameOrigin::kApi);
  }
  return frame;
}

PathId CallPaths::AddFrames(PathId path, std::span<const FrameId> innermost_first) {
  for (auto frame = innermost_first.rbegin(); frame != innermost_first.rend(); ++frame) {
    path = tree_.Child(path, *frame);
  }
  return path;
}

uint64_t CallPaths::KeyOf(const EventStack& stack, Context context) {
  context.has_python = static_cast<bool>(stack.python);
  context.end = stack.end;
  uint32_t number = stack.native.value;
  if (stack.python) {
    PairId& pair = pairs_[uint64_t{number} << 32 | stack.python.value];
    if (!pair) pair = PairId{++pair_count_};
    number = pair.value;
  }
  return uint64_t{number} << 32 | Intern(context).value;
}

PathId CallPaths::OfSample(const CpuSample& sample) {
  return OfStack(StackOf(sample), OwnerOf(analysis_, sample));
}

PathId CallPaths::OfHit(const ProbeHit& hit) {
  return OfStack(StackOf(hit), OwnerOf(analysis_, hit));
}

PathId CallPaths::OfStack(const EventStack& whole, const Owner& owner) {
  const SpaceId space = analysis_.processes.SpaceAt(owner.process, owner.time_ns);
  const FrameId comm = Comm(owner);
  const EventStack shown = analysis_.stacks.Shown(whole);
  const uint64_t key = KeyOf(shown, {.space = space, .comm = comm});
  if (const PathId known = paths_.Get(key)) return known;
  const ResolvedStack stack = analysis_.stacks.Resolve(shown, space, owner.time_ns);
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
  const FrameId api = FrameOf(ApiNameIdOf(analysis_.api_names, launch));
  if (!launch.stack && !launch.python_stack) return UnknownLaunch(owner, api);

  const SpaceId space = analysis_.processes.SpaceAt(owner.process, owner.time_ns);
  const FrameId comm = Comm(owner);
  const EventStack shown = analysis_.stacks.Shown(StackOf(launch));
  const uint64_t key = KeyOf(shown, {.space = space, .comm = comm, .call = api});
  if (const PathId known = paths_.Get(key)) return known;
  const ResolvedStack stack = analysis_.stacks.Resolve(shown, space, owner.time_ns);
  std::span<const FrameId> frames = stack.frames;
  if (!options_.keep_internal_frames) {
    frames = frames.subspan(CountInternalFrames(frames, analysis_.frames));
  }
  const PathId path = tree_.Child(AddFrames(tree_.Child(PathId{}, comm), frames), api);
  if (stack.at_any_time) paths_[key] = path;
  return path;
}

std::vector<FrameId> CallPaths::CapturedAt(const GpuWork& work) {
  switch (work.origin) {
    case NodeOrigin::kNoNode:
      return {};
    case NodeOrigin::kUnknown:
      return {unknown_};
    case NodeOrigin::kBeforeRecording:
      return {before_recording_};
    case NodeOrigin::kKnown:
      break;
  }
  std::vector<FrameId> frames = tree_.Path(OfLaunch(analysis_.correlation.launches[work.creation]));
  frames.erase(frames.begin());  // the name of the thread
  return frames;
}

PathId CallPaths::WithCreation(PathId path, const GpuWork& work) {
  path = tree_.Child(path, captured_at_);
  if (work.origin != NodeOrigin::kKnown) return tree_.Child(path, CapturedAt(work).front());
  const PathId creation = OfLaunch(analysis_.correlation.launches[work.creation]);
  const uint64_t key = uint64_t{path.value} << 32 | creation.value;
  if (const PathId known = with_creation_.Get(key)) return known;
  for (const FrameId frame : CapturedAt(work)) path = tree_.Child(path, frame);
  return with_creation_[key] = path;
}

PathId CallPaths::OfWork(const GpuWork& work) {
  const auto& launches = analysis_.correlation.launches;
  const bool is_node = work.origin != NodeOrigin::kNoNode;
  if (is_node && options_.graph_stacks == GraphStacks::kCreation) {
    if (work.origin == NodeOrigin::kKnown) return OfLaunch(launches[work.creation]);
    return WithCreation(tree_.Child(PathId{}, Comm(OwnerOf(analysis_, work))), work);
  }
  const PathId path = work.launch == GpuWork::kNoLaunch
                          ? UnknownLaunch(OwnerOf(analysis_, work), FrameId{})
                          : OfLaunch(launches[work.launch]);
  return is_node && options_.graph_stacks == GraphStacks::kBoth ? WithCreation(path, work) : path;
}

}  // namespace xpu
