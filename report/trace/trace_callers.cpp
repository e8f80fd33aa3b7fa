#include "report/trace/trace_callers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "report/correlate/launch_frames.h"
#include "report/text.h"
#include "report/tree/call_paths.h"

namespace xpu {
namespace {

constexpr FramePlaces kWithLines = {.lines = true};

// Of a package or the standard library: not what somebody who looks for their own line means.
bool IsInstalled(std::string_view path) {
  static constexpr std::array<std::string_view, 3> kPlaces = {"/site-packages/", "/dist-packages/",
                                                              "/lib/python3"};
  return path.starts_with('<') ||
         std::any_of(kPlaces.begin(), kPlaces.end(), [&](std::string_view place) {
           return path.find(place) != std::string_view::npos;
         });
}

std::string LabelAsJson(const NamedFrame& frame) {
  std::string json;
  AppendJsonString(json, frame.Label());
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
    if (IsInstalled(frame.module)) continue;
    if (!is_first) callers.script = LabelAsJson(frame);
    break;
  }
  return callers;
}

}  // namespace xpu
