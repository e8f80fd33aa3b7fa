#include "report/views/chrome_trace/trace_callers.h"

#include <span>

#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/output/text.h"
#include "report/stacks/launch_frames.h"
#include "report/stacks/python_places.h"

namespace xpu {
namespace {

constexpr FramePlaces kWithLines = {.lines = true};

// Of a function without a line at least the file that it is in: "at::native::gelu (libtorch.so)".
std::string LabelAsJson(const NamedFrame& frame) {
  std::string label = frame.Label();
  const bool has_place = !frame.place.empty() || frame.nameless_in || frame.module.empty();
  if (frame.IsNative() && !has_place) AppendFormat(label, " ({})", frame.module);
  std::string json;
  AppendJsonString(json, label);
  return json;
}

}  // namespace

TraceCallers::TraceCallers(Analysis& analysis)
    : analysis_(analysis),
      native_(analysis.model, analysis.processes, analysis.api_names, analysis.symbolizer,
              analysis.frames, kWithLines),
      stacks_(analysis.model, native_, analysis.frames, kWithLines, PythonView::kMerge) {}

const TraceCallers::Callers& TraceCallers::Of(const Launch& launch) {
  if (!launch.stack && !launch.python_stack) return other_ = {};
  const Owner owner = OwnerOf(analysis_, launch);
  const SpaceId space = analysis_.processes.SpaceAt(owner.process, owner.time_ns);
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
  callers.innermost = LabelAsJson(analysis_.frames[frames.front()]);
  for (const FrameId id : frames) {
    const NamedFrame& frame = analysis_.frames[id];
    if (frame.origin != FrameOrigin::kPython) continue;
    const bool is_first = callers.python.empty();
    if (is_first) callers.python = LabelAsJson(frame);
    if (IsInstalledPython(frame.module)) continue;
    if (!is_first) callers.script = LabelAsJson(frame);
    break;
  }
  return callers;
}

}  // namespace xpu
