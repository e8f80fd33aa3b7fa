#include "report/views/timeline/trace_names.h"

#include <span>

#include "format/base/source_name.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/output/text.h"
#include "report/stacks/frames.h"
#include "report/stacks/python_frames.h"
#include "report/views/timeline/trace_args.h"

namespace xpu {
namespace {

// The place of an id that counts from 1.
template <typename Value, typename Id>
Value& At(std::vector<Value>& values, Id id) {
  if (values.size() < id.value) values.resize(id.value);
  return values[id.value - 1];
}

std::string_view CategoryOf(FrameOrigin origin) {
  if (origin == FrameOrigin::kKernel) return "cpu_kernel";
  return origin == FrameOrigin::kPython ? "cpu_python" : "cpu";
}

constexpr FramePlaces kWithLines = {.lines = true};

// Of a function without a line at least the file that it is in: "at::native::gelu (libtorch.so)".
std::string LabelOf(const NamedFrame& frame) {
  std::string label = frame.Label();
  const bool has_place = !frame.place.empty() || frame.nameless_in || frame.module.empty();
  if (frame.IsNative() && !has_place) AppendFormat(label, " ({})", frame.module);
  return label;
}

}  // namespace

const TraceName& TraceNames::OfCall(const Launch& launch) {
  const std::string& name = ApiNameOf(analysis_.api_names, launch);
  const auto [at, is_new] = calls_.try_emplace(&name);
  if (is_new) at->second = sink_.Name(name, "cuda_api");
  return at->second;
}

const TraceName& TraceNames::OfWork(const GpuWork& work) {
  if (work.kind != WorkKind::kKernel) {
    return other_ = sink_.Name(gpu_names_.Title(work), WorkKindName(work.kind));
  }
  const auto [at, is_new] =
      kernels_.try_emplace(analysis_.model.events.kernels.Get<&Kernel::name>(work.index));
  if (is_new) at->second = sink_.Name(gpu_names_.Title(work), WorkKindName(work.kind));
  return at->second;
}

const TraceName& TraceNames::OfFrame(FrameId frame) {
  TraceName& name = At(frames_, frame);
  if (name.empty()) {
    const NamedFrame& named = analysis_.frames[frame];
    name = sink_.Name(named.Label(), CategoryOf(named.origin));
  }
  return name;
}

const TraceText& TraceNames::CapturedAt(const GpuWork& work) {
  if (work.origin != NodeOrigin::kKnown) {
    return unknown_creation_ = sink_.Text(FoldedText(analysis_.frames, paths_.CapturedAt(work)));
  }
  TraceText& path = At(creations_, paths_.OfLaunch(analysis_.correlation.launches[work.creation]));
  if (path.empty()) path = sink_.Text(FoldedText(analysis_.frames, paths_.CapturedAt(work)));
  return path;
}

std::string TraceNames::StackOf(PathId path) const {
  const std::vector<FrameId> frames = paths_.tree().Path(path);
  return FoldedText(analysis_.frames, std::span(frames).subspan(frames.empty() ? 0 : 1));
}

std::string TraceNames::KernelOf(const Launch& launch) {
  return launch.probe == 0 ? std::string() : LaunchedKernel(analysis_, gpu_names_, launch);
}

TraceCallers::TraceCallers(Analysis& analysis, TraceSink& sink)
    : analysis_(analysis),
      sink_(sink),
      native_(analysis.model, analysis.processes, analysis.api_names, analysis.symbolizer,
              analysis.frames, kWithLines),
      stacks_(analysis.model, analysis.sources, native_, analysis.frames, kWithLines,
              PythonView::kMerge) {}

const TraceCallers::Callers& TraceCallers::Of(const Launch& launch) {
  if (!launch.stack && !launch.python_stack) return other_ = {};
  const Owner owner = launch.owner();
  const SpaceId space = analysis_.processes.SpaceAt(owner);
  auto& of_space = known_[space];
  const uint64_t key = uint64_t{launch.stack.value} << 32 | launch.python_stack.value;
  if (const auto known = of_space.find(key); known != of_space.end()) return known->second;
  const ResolvedStack stack = stacks_.Resolve(stacks_.Shown(StackOf(launch)), space, owner.time_ns);
  if (!stack.at_any_time) return other_ = Find(stack);
  return of_space.emplace(key, Find(stack)).first->second;
}

TraceCallers::Callers TraceCallers::Find(const ResolvedStack& stack) const {
  const std::span<const FrameId> frames =
      std::span(stack.frames).subspan(CountInternalFrames(stack.frames, analysis_.frames));
  Callers callers;
  if (frames.empty()) return callers;
  callers.innermost = sink_.Text(LabelOf(analysis_.frames[frames.front()]));
  for (const FrameId id : frames) {
    const NamedFrame& frame = analysis_.frames[id];
    if (frame.origin != FrameOrigin::kPython) continue;
    const bool is_first = callers.python.empty();
    if (is_first) callers.python = sink_.Text(LabelOf(frame));
    if (IsInstalledPython(frame.module)) continue;
    if (!is_first) callers.script = sink_.Text(LabelOf(frame));
    break;
  }
  return callers;
}

}  // namespace xpu
