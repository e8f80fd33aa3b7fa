#include "report/trace_names.h"

#include <span>

#include "report/launched_kernel.h"
#include "report/text.h"
#include "report/trace_args.h"

namespace xpu {
namespace {

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(json, text);
  return json;
}

std::string QuotedPath(const FrameTable& frames, std::span<const FrameId> path) {
  std::string text;
  for (const FrameId frame : path) {
    if (!text.empty()) text += " > ";
    text += frames[frame].Label();
  }
  return Quoted(text);
}

// The place of an id that counts from 1.
template <typename Value, typename Id>
Value& At(std::vector<Value>& values, Id id) {
  if (values.size() < id.value) values.resize(id.value);
  return values[id.value - 1];
}

}  // namespace

const TraceName& TraceNames::OfCall(const Launch& launch) {
  const std::string& name = ApiNameOf(analysis_.api_names, launch);
  const auto [at, is_new] = calls_.try_emplace(&name);
  if (is_new) at->second = TraceName(name, "cuda_api");
  return at->second;
}

const TraceName& TraceNames::OfWork(const GpuWork& work) {
  if (work.kind != WorkKind::kKernel) {
    return other_ = TraceName(gpu_names_.Title(work), WorkKindName(work.kind));
  }
  const auto [at, is_new] = kernels_.try_emplace(analysis_.model.events.kernels[work.index].name);
  if (is_new) at->second = TraceName(gpu_names_.Title(work), WorkKindName(work.kind));
  return at->second;
}

const TraceName& TraceNames::OfFrame(FrameId frame) {
  TraceName& name = At(frames_, frame);
  if (name.members().empty()) {
    const NamedFrame& named = analysis_.frames[frame];
    name = TraceName(named.Label(), named.origin == FrameOrigin::kKernel ? "cpu_kernel" : "cpu");
  }
  return name;
}

std::string_view TraceNames::CallerOf(const Launch& launch) {
  if (!launch.stack) return {};
  const CallTree::Node& call = paths_.tree()[paths_.OfLaunch(launch)];
  const CallTree::Node& caller = paths_.tree()[call.parent];
  if (!caller.parent) return {};  // just the name of the thread
  std::string& label = At(labels_, caller.frame);
  if (label.empty()) label = Quoted(analysis_.frames[caller.frame].Label());
  return label;
}

std::string_view TraceNames::CapturedAt(const GpuWork& work) {
  if (work.origin != NodeOrigin::kKnown) {
    return unknown_creation_ = QuotedPath(analysis_.frames, paths_.CapturedAt(work));
  }
  std::string& path =
      At(creations_, paths_.OfLaunch(analysis_.correlation.launches[work.creation]));
  if (path.empty()) path = QuotedPath(analysis_.frames, paths_.CapturedAt(work));
  return path;
}

std::string TraceNames::KernelOf(const Launch& launch) {
  return launch.probe == 0 ? std::string() : LaunchedKernel(analysis_, gpu_names_, launch);
}

}  // namespace xpu
