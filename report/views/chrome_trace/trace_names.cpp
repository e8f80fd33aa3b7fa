#include "report/views/chrome_trace/trace_names.h"

#include <span>

#include "report/analysis/launched_kernel.h"
#include "report/output/text.h"
#include "report/views/chrome_trace/trace_args.h"

namespace xpu {
namespace {

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(json, text);
  return json;
}

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
  const auto [at, is_new] =
      kernels_.try_emplace(analysis_.model.events.kernels.Get<&Kernel::name>(work.index));
  if (is_new) at->second = TraceName(gpu_names_.Title(work), WorkKindName(work.kind));
  return at->second;
}

const TraceName& TraceNames::OfFrame(FrameId frame) {
  TraceName& name = At(frames_, frame);
  if (name.members().empty()) {
    const NamedFrame& named = analysis_.frames[frame];
    name = TraceName(named.Label(), CategoryOf(named.origin));
  }
  return name;
}

std::string_view TraceNames::CapturedAt(const GpuWork& work) {
  if (work.origin != NodeOrigin::kKnown) {
    return unknown_creation_ = Quoted(FoldedText(analysis_.frames, paths_.CapturedAt(work)));
  }
  std::string& path =
      At(creations_, paths_.OfLaunch(analysis_.correlation.launches[work.creation]));
  if (path.empty()) path = Quoted(FoldedText(analysis_.frames, paths_.CapturedAt(work)));
  return path;
}

std::string TraceNames::StackOf(PathId path) const {
  const std::vector<FrameId> frames = paths_.tree().Path(path);
  return FoldedText(analysis_.frames, std::span(frames).subspan(frames.empty() ? 0 : 1));
}

std::string TraceNames::KernelOf(const Launch& launch) {
  return launch.probe == 0 ? std::string() : LaunchedKernel(analysis_, gpu_names_, launch);
}

}  // namespace xpu
