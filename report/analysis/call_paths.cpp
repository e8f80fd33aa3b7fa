#include "report/analysis/call_paths.h"

#include <set>

#include "report/stacks/frames.h"
#include "report/trace/user_probes.h"

namespace xpu {
namespace {

// One caller of so many is kept: the others are found a few steps further out, for an eighth of the
// memory.
constexpr size_t kKeptEach = 8;

}  // namespace

// The program would not do what the profiler does, nor all that it calls for that.
PathId NativePaths::Inner(PathId path, FrameId frame) {
  const auto child = [&](FrameId of, bool is_profiler) {
    const PathId inner = tree_.Child(path, of);
    if (is_profiler && inner != path) {
      if (is_profiler_.size() <= inner.value) is_profiler_.resize(inner.value + 1);
      is_profiler_[inner.value] = true;
    }
    path = inner;
  };
  if (!IsProfiler(path) && frames_[frame].is_profiler) {
    child(profiler_, true);
    if (!keep_profiler_) return path;
  } else if (IsProfiler(path) && !keep_profiler_) {
    return path;
  }
  child(frame, IsProfiler(path));
  return path;
}

PathId NativePaths::Add(PathId path, std::span<const FrameId> innermost_first) {
  for (auto frame = innermost_first.rbegin(); frame != innermost_first.rend(); ++frame) {
    const PathId inner = Inner(path, *frame);
    if (inner == path) break;
    path = inner;
  }
  return path;
}

NativePaths::Found NativePaths::Of(StackId stack, PathId root, SpaceId space, uint64_t time_ns) {
  steps_.clear();
  PlaceId& place = places_[uint64_t{space.value} << 32 | root.value];
  if (!place) place = PlaceId{++place_count_};
  PathId path = root;
  unsigned inside = 0;
  for (; stack; stack = model_.tables->Node(stack).caller) {
    if (model_.tables->IsLost(stack)) {
      path = tree_.Child(path, resolver_.lost());
      break;
    }
    const uint64_t key = uint64_t{stack.value} << 32 | place.value;
    FlatMap<PathId>& known = known_[inside];
    if (const PathId at = known.Get(key)) {
      path = at;
      break;
    }
    const Frame frame = model_.tables->Node(stack).frame;
    const unsigned kind = frame.kind == FrameKind::kKernel ? 1 : 2;
    steps_.push_back({frame, (inside & kind) == 0, key, &known});
    inside |= kind;
  }
  bool at_any_time = true;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (!IsProfiler(path) || keep_profiler_) {
      const StackResolver::FramesAt at = resolver_.At(step.frame, step.exact, space, time_ns);
      at_any_time = at_any_time && at.at_any_time;
      const PathId inner = Add(path, at.innermost_first);
      if (inner == path && tree_.is_full()) return {path, true};  // so is what would be below
      path = inner;
    }
    // Counted from the outermost one, so that all stacks meet at the same ones.
    const bool is_kept = (steps_.size() - i) % kKeptEach == 0;
    if (is_kept && at_any_time && !tree_.is_full()) (*step.known)[step.key] = path;
  }
  return {path, at_any_time};
}

Owner WakerOf(const Analysis& analysis, const OffCpuWait& wait) {
  return analysis.tracks.OwnerAt(wait.waker_pid, wait.waker_tid, wait.ready_ns);
}

CallPaths::ContextId CallPaths::Intern(const Context& context) {
  if (last_context_ && last_context_->first == context) return last_context_->second;
  const auto next = static_cast<uint32_t>(contexts_.size() + 1);
  last_context_ = *contexts_.try_emplace(context, ContextId{next}).first;
  return last_context_->second;
}

CallPaths::CallPaths(Analysis& analysis, const PathOptions& options)
    : analysis_(analysis),
      options_(options),
      tree_(analysis.call_trees),
      native_(analysis.model, analysis.resolver, analysis.frames, tree_,
              options.keep_internal_frames),
      work_before_(analysis.resolver.work()),
      left_out_(analysis.frames.Intern("[stack left out]")),
      unknown_(analysis.frames.Intern("[unknown]")),
      unknown_launch_(analysis.frames.Intern("[unknown launch]")),
      captured_at_(analysis.frames.Intern("[captured at]")),
      before_recording_(analysis.frames.Intern("[before the recording]")) {}

void CallPaths::NameAhead(const Stacks& stacks) {
  WantAll(stacks);
  analysis_.symbolizer.ResolveRequested();
}

void CallPaths::WantAll(const Stacks& stacks) {
  const auto want = [&](StackId stack, const Owner& owner) {
    if (IsOverLimit()) return;  // what was not wanted is looked up when it is shown
    analysis_.resolver.Want(stack, analysis_.processes.SpaceAt(owner), owner.time_ns);
  };
  const auto want_all = [&](const auto& events) {
    for (const auto& event : events) {
      if (event.stack) want(event.stack, event.owner());
    }
  };
  const auto is_new = [](bool is_wanted, bool& was_wanted) {
    return is_wanted && !std::exchange(was_wanted, true);
  };
  if (is_new(stacks.samples, wanted_.samples)) want_all(analysis_.CpuSamples());
  if (is_new(stacks.others_samples, wanted_.others_samples) &&
      !analysis_.shown.events.cpu_samples.is_all()) {
    std::set<uint32_t> pids;
    for (const auto& [instance, process] : analysis_.correlation.processes) {
      pids.insert(process.pid);
    }
    for (const uint32_t place : analysis_.SamplesOfSources().places()) {
      const Owned<CpuSample>& sample = analysis_.model.events.cpu_samples[place];
      if (analysis_.shown.events.cpu_samples.Has(place) || !pids.contains(sample.pid)) continue;
      want(sample.stack, sample.owner());
    }
  }
  if (is_new(stacks.probe_hits, wanted_.probe_hits)) {
    const UserProbes probes(analysis_.model);
    for (const Owned<ProbeHit>& hit : analysis_.ProbeHits()) {
      if (hit.stack && probes.Of(hit) != nullptr) want(hit.stack, hit.owner());
    }
  }
  if (is_new(stacks.off_cpu_waits, wanted_.off_cpu_waits)) {
    for (const Owned<OffCpuWait>& wait : analysis_.OffCpuWaits()) {
      if (wait.stack) want(wait.stack, wait.owner());
      if (wait.waker_stack) want(wait.waker_stack, WakerOf(analysis_, wait));
    }
  }
  if (is_new(stacks.blocks, wanted_.blocks)) want_all(analysis_.AllocatorEvents());
  if (is_new(stacks.launches, wanted_.launches)) want_all(analysis_.Launches());
  work_before_ = analysis_.resolver.work();
}

FrameId CallPaths::Comm(const Owner& owner) {
  FrameId& comm = comms_[owner.track];
  if (!comm) {
    const std::string_view text = analysis_.tracks.NameOf(owner);
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
    const PathId inner = tree_.Child(path, *frame);
    if (inner == path) break;  // the tree is full
    path = inner;
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

PathId CallPaths::OfWait(const Owned<OffCpuWait>& wait) {
  const bool has_no_frames = !wait.stack && !wait.python_stack;
  if (has_no_frames && (wait.stack_flags & kStackComplete) != 0) return OfThread(wait.owner());
  return Of(wait);
}

PathId CallPaths::OfWaker(const OffCpuWait& wait) {
  OffCpuWait waker = wait;
  waker.stack = wait.waker_stack;
  waker.stack_flags = wait.waker_stack_flags;
  waker.python_stack = wait.waker_python_stack;
  const EventStack stack = StackOf(waker);
  const Owner owner = WakerOf(analysis_, wait);
  if (!stack.native && !stack.python) return OfThread(owner);
  return OfStack(stack, owner, FrameId{});
}

PathId CallPaths::OfThread(const Owner& owner) { return tree_.Child(PathId{}, Comm(owner)); }

NativePaths::Found CallPaths::Resolve(const EventStack& shown, PathId root, SpaceId space,
                                      uint64_t time_ns, FrameId call) {
  const bool shows_native = !shown.python && shown.native;
  if (!call && shows_native) return native_.Of(shown.native, root, space, time_ns);
  const ResolvedStack stack = analysis_.stacks.Resolve(shown, space, time_ns);
  std::span<const FrameId> frames = stack.frames;
  if (!call) {
    const PathId path = frames.empty() ? tree_.Child(root, unknown_) : native_.Add(root, frames);
    return {path, stack.at_any_time};
  }
  if (!options_.keep_internal_frames) {
    frames = frames.subspan(CountInternalFrames(frames, analysis_.frames));
  }
  return {tree_.Child(AddFrames(root, frames), call), stack.at_any_time};
}

PathId CallPaths::OfStack(const EventStack& whole, const Owner& owner, FrameId call) {
  const SpaceId space = analysis_.processes.SpaceAt(owner);
  const FrameId comm = Comm(owner);
  const EventStack shown = analysis_.stacks.Shown(whole);
  Context context{.space = space, .comm = comm, .call = call};
  const uint64_t key = KeyOf(shown, context);
  if (const PathId known = paths_.Get(key)) return known;
  uint64_t key_then = 0;
  if (const auto epoch = analysis_.resolver.EpochAt(space, owner.time_ns)) {
    context.epoch = *epoch + 1;
    key_then = KeyOf(shown, context);
    if (const PathId known = paths_.Get(key_then)) return known;
  }
  const PathId root = tree_.Child(PathId{}, comm);
  if (tree_[root].frame != comm) return root;  // the tree was full before the thread came
  if (IsOverLimit()) {
    ++analysis_.call_trees.stacks_left_out;
    const PathId path = tree_.Child(root, left_out_);
    return call ? tree_.Child(path, call) : path;
  }
  const NativePaths::Found found = Resolve(shown, root, space, owner.time_ns, call);
  if (found.at_any_time) {
    paths_[key] = found.path;
  } else if (key_then != 0) {
    paths_[key_then] = found.path;
  }
  return found.path;
}

PathId CallPaths::UnknownLaunch(const Owner& owner, FrameId api) {
  PathId path = tree_.Child(PathId{}, Comm(owner));
  path = tree_.Child(path, unknown_launch_);
  return api ? tree_.Child(path, api) : path;
}

PathId CallPaths::OfLaunch(const Launch& launch) {
  const Owner owner = launch.owner();
  const FrameId api = FrameOf(launch.name);
  if (!launch.stack && !launch.python_stack) return UnknownLaunch(owner, api);

  return OfStack(StackOf(launch), owner, api);
}

PathId CallPaths::OfLaunchAt(uint32_t place) {
  const LaunchList& launches = analysis_.correlation.launches;
  if (of_launches_.empty()) of_launches_.resize(launches.size());
  PathId& known = of_launches_[place];
  if (!known) known = OfLaunch(launches[place]);
  return known;
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
  std::vector<FrameId> frames = tree_.Path(OfLaunchAt(work.creation));
  frames.erase(frames.begin());  // the name of the thread
  return frames;
}

PathId CallPaths::WithCreation(PathId path, const GpuWork& work) {
  path = tree_.Child(path, captured_at_);
  if (work.origin != NodeOrigin::kKnown) return tree_.Child(path, CapturedAt(work).front());
  const PathId creation = OfLaunchAt(work.creation);
  const uint64_t key = uint64_t{path.value} << 32 | creation.value;
  if (const PathId known = with_creation_.Get(key)) return known;
  for (const FrameId frame : CapturedAt(work)) path = tree_.Child(path, frame);
  return with_creation_[key] = path;
}

PathId CallPaths::OfWork(const GpuWork& work) {
  const bool is_node = work.origin != NodeOrigin::kNoNode;
  if (is_node && options_.graph_stacks == GraphStacks::kCreation) {
    if (work.origin == NodeOrigin::kKnown) return OfLaunchAt(work.creation);
    return WithCreation(tree_.Child(PathId{}, Comm(work.owner())), work);
  }
  const PathId path = work.launch == GpuWork::kNoLaunch ? UnknownLaunch(work.owner(), FrameId{})
                                                        : OfLaunchAt(work.launch);
  return is_node && options_.graph_stacks == GraphStacks::kBoth ? WithCreation(path, work) : path;
}

}  // namespace xpu
