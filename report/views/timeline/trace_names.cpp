#include "report/views/timeline/trace_names.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "format/base/saturated.h"
#include "format/base/source_name.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/query/gpu_memory.h"
#include "report/stacks/frames.h"
#include "report/stacks/python_frames.h"
#include "report/trace/correlation.h"

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

// A function without a line has at least its file: "at::native::gelu (libtorch.so)".
std::string LabelOf(const NamedFrame& frame) {
  std::string label = frame.Label();
  const bool has_place = !frame.place.empty() || frame.nameless_in || frame.module.empty();
  if (frame.IsNative() && !has_place) AppendFormat(label, " ({})", frame.module);
  return label;
}

void WriteArgs(const Kernel& kernel, TraceSink& sink) {
  sink.Arg("grid", {kernel.grid_x, kernel.grid_y, kernel.grid_z});
  sink.Arg("block", {kernel.block_x, kernel.block_y, kernel.block_z});
  if (kernel.cluster_x != 0) {
    sink.ArgText("cluster",
                 Format("{} x {} x {}", kernel.cluster_x, kernel.cluster_y, kernel.cluster_z));
  }
  sink.Arg("registers per thread", kernel.registers_per_thread);
  sink.Arg("static shared memory", kernel.static_shared_memory_bytes);
  sink.Arg("dynamic shared memory", kernel.dynamic_shared_memory_bytes);
  sink.Arg("local memory per thread", kernel.local_memory_per_thread_bytes);
}

// Bytes per nanosecond are GB/s.
void WriteBytes(uint64_t bytes, uint64_t duration_ns, TraceSink& sink) {
  sink.Arg("bytes", bytes);
  if (duration_ns == 0 || bytes > std::numeric_limits<uint64_t>::max() / 1000) return;
  sink.ArgThousandths("memory bandwidth (GB/s)", bytes * 1000 / duration_ns);
}

void WriteArgs(const Memcpy& copy, TraceSink& sink) {
  sink.ArgText("source", MemoryKindText(copy.source_kind));
  sink.ArgText("destination", MemoryKindText(copy.destination_kind));
}

void WriteArgs(const Memset& set, TraceSink& sink) { sink.Arg("value", set.value); }

void WriteArgs(const GraphLaunch& graph, TraceSink& sink) { sink.Arg("graph", graph.graph_id); }

void WriteArgs(const Synchronization& wait, TraceSink& sink) {
  if (wait.event_id != kNoSynchronizedObject) sink.Arg("event", wait.event_id);
}

// From the call to the start of its work: when it began, and how much of that the work waited
// after the call had returned. Not of a graph's node, which waits for the nodes before it.
void WriteLatency(const Analysis& analysis, const GpuWork& work, TraceSink& sink) {
  if (work.launch == GpuWork::kNoLaunch) {
    sink.ArgText("launch", "[unknown launch]");
    return;
  }
  // Almost all are matched by id: only the others say how.
  if (work.match != MatchKind::kById) sink.ArgText("matched", MatchText(work.match));
  const Launch& launch = analysis.correlation.launches[work.launch];
  const bool is_node = work.origin != NodeOrigin::kNoNode;
  if (work.kind == WorkKind::kSynchronization || is_node || !launch.has_call) return;
  if (work.start_ns < launch.start_ns) return;  // the clocks are off by as much
  sink.ArgThousandths("launch latency (us)", work.start_ns - launch.start_ns);
  sink.ArgThousandths("queue time (us)", work.start_ns - std::min(work.start_ns, launch.end_ns));
}

template <typename Record>
void WriteAllArgs(const Analysis& analysis, const Record& record, const GpuWork& work,
                  TraceSink& sink) {
  if constexpr (requires { record.size_bytes; }) {
    WriteBytes(record.size_bytes, work.duration_ns, sink);
  }
  WriteArgs(record, sink);
  WriteLatency(analysis, work, sink);
  sink.Arg("device", work.gpu);
  sink.Arg("context", record.context_id);
  if (record.stream_id != kNoSynchronizedObject) sink.Arg("stream", record.stream_id);
  sink.Arg("correlation", record.correlation_id);
  if constexpr (requires { record.graph_node_id; }) {
    if (record.graph_node_id == 0) return;
    sink.Arg("graph", GraphIdOf(record.graph_id, record.graph_node_id));
    sink.Arg("graph node", record.graph_node_id);
  }
}

constexpr size_t kMostTexts = 3;

// "wait 61 %, selected 22 %": those of most samples.
std::string LargestOf(const std::map<std::string, uint64_t>& samples, uint64_t whole) {
  std::vector<std::pair<std::string, uint64_t>> sorted(samples.begin(), samples.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > kMostTexts) sorted.resize(kMostTexts);
  std::string text;
  for (const auto& [name, count] : sorted) {
    AppendFormat(text, "{}{} {:.0f} %", text.empty() ? "" : ", ", name,
                 100.0 * static_cast<double>(count) / static_cast<double>(whole));
  }
  return text;
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

void WriteRangeArgs(const Analysis& analysis, const NvtxRange& range, TraceSink& sink) {
  const NvtxEvent& event = *range.event;
  sink.ArgText("style", StyleText(range.style));
  if (range.is_open) sink.ArgText("end", "not in the capture");
  if (event.category != 0) sink.ArgText("category", analysis.nvtx.CategoryOf(event));
  if (event.color != 0) sink.ArgText("color", Format("#{:08x}", event.color));
  const std::string payload = analysis.nvtx.PayloadOf(range);
  if (!payload.empty()) sink.ArgText("payload", payload);
}

void WriteCallArgs(const Launch& launch, TraceSink& sink) {
  if (launch.probe != 0) {
    sink.ArgText("matched", MatchText(launch.stack_match));
  } else {
    sink.Arg("correlation", launch.correlation_id);
    const bool is_by_id = launch.stack_match == MatchKind::kById;
    if (launch.has_stack && !is_by_id) sink.ArgText("stack matched", MatchText(launch.stack_match));
  }
  if (launch.return_value != 0) sink.Arg("error", launch.return_value);
  const LaunchStatus status = LaunchStatusOf(launch);
  if (status == LaunchStatus::kCaptured) sink.Arg("captured graph nodes", launch.graph_nodes);
  if (status == LaunchStatus::kUnmatched) sink.ArgText("work", "[no GPU record]");
}

void WriteOverheadArgs(const Analysis& analysis, const DriverTime& overhead, TraceSink& sink) {
  sink.Arg("correlation", overhead.correlation_id());
  if (overhead.jit == nullptr) return;
  const JitOperation& jit = *overhead.jit;
  sink.Arg("device", analysis.gpus.Of(jit.instance, jit.device_id).number);
  if (jit.tid != 0) sink.Arg("thread", jit.tid);
  sink.Arg("compilation", jit.jit_correlation_id);
  sink.Arg("size of the cache", jit.cache_size_bytes);
  sink.ArgText("cache", analysis.model.Text(jit.cache_path));
}

void WriteWorkArgs(const Analysis& analysis, const GpuWork& work, TraceSink& sink) {
  const LoadedEvents& events = analysis.model.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return WriteAllArgs(analysis, events.kernels[work.index], work, sink);
    case WorkKind::kMemcpy:
      return WriteAllArgs(analysis, events.memcpys[work.index], work, sink);
    case WorkKind::kMemset:
      return WriteAllArgs(analysis, events.memsets[work.index], work, sink);
    case WorkKind::kGraph:
      return WriteAllArgs(analysis, events.graph_launches[work.index], work, sink);
    case WorkKind::kSynchronization:
      return WriteAllArgs(analysis, events.synchronizations[work.index], work, sink);
  }
}

TraceGpuCode::Texts TraceGpuCode::MakeTexts(const CodeSamples::Functions& functions) const {
  Texts texts;
  std::map<std::string, uint64_t> lines;
  std::map<std::string, uint64_t> stalls;
  for (const uint32_t place : functions) {
    for (const SampledInstruction& at : samples_.functions()[place].instructions) {
      const uint64_t samples = at.samples();
      texts.samples = AddSaturated(texts.samples, samples);
      if (!at.lines.empty()) lines[ShortPlaceOf(at.lines.front())] += samples;
      for (const auto& [stall, count] : at.stalls) stalls[stall] += count.samples;
    }
  }
  if (texts.samples == 0) return texts;
  texts.line = LargestOf(lines, texts.samples);
  texts.stalls = LargestOf(stalls, texts.samples);
  return texts;
}

void TraceGpuCode::WriteArgs(const GpuWork& work, TraceSink& sink) {
  if (work.kind != WorkKind::kKernel || samples_.empty()) return;
  const CodeSamples::Functions& functions = samples_.Of(work.index);
  if (functions.empty()) return;
  const auto [known, is_new] = texts_.try_emplace(&functions);
  if (is_new) known->second = MakeTexts(functions);
  const Texts& texts = known->second;
  if (texts.samples == 0) return;
  sink.Arg("samples of all kernels of the name", texts.samples);
  if (!texts.line.empty()) sink.ArgText("sampled lines", texts.line);
  sink.ArgText("sampled stalls", texts.stalls);
}

}  // namespace xpu
