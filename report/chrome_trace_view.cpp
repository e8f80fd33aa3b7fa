#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "format/base/text.h"
#include "report/call_paths.h"
#include "report/launched_kernel.h"
#include "report/ledger.h"
#include "report/text.h"
#include "report/trace_args.h"
#include "report/trace_tracks.h"
#include "report/trace_writer.h"
#include "report/views.h"

namespace xpu {
namespace {

uint64_t FirstTime(const Analysis& analysis) {
  const EventBatch& events = analysis.model.events;
  uint64_t first = ~uint64_t{0};
  if (!events.recording_info.empty()) first = events.recording_info.front().start_ns;
  if (!events.cpu_samples.empty()) first = std::min(first, events.cpu_samples.front().time_ns);
  for (const Launch& launch : analysis.correlation.launches) {
    first = std::min(first, launch.start_ns);
  }
  for (const GpuWork& work : analysis.correlation.work) {
    if (work.timed) first = std::min(first, work.start_ns);
  }
  for (const Overhead& overhead : events.overheads) {
    if (overhead.start_ns == 0) continue;
    first = std::min(first, analysis.clocks.Of(overhead.instance).ToMonotonic(overhead.start_ns));
  }
  return first == ~uint64_t{0} ? 0 : first;
}

class Trace {
 public:
  Trace(Analysis& analysis, const TraceOptions& options, Output& output)
      : analysis_(analysis),
        options_(options),
        names_(analysis, options.kernel_names),
        output_(output),
        writer_(output, FirstTime(analysis)),
        tracks_(analysis, writer_),
        paths_(analysis, {.graph_stacks = options.graph_stacks}) {}

  void Write() {
    paths_.NameAhead(true, true);
    WriteCalls();
    WriteWork();
    WriteOverheads();
    WriteSamples();
    WriteOtherData();
  }

 private:
  void WriteCalls();
  void WriteWork();
  void WriteOneWork(const GpuWork& work);
  std::string CallArgs(const Launch& launch);
  std::string WorkArgs(const GpuWork& work);
  void WriteOverheads();
  void WriteSamples();
  void WriteThreadSamples(const std::vector<uint32_t>& samples);
  void WriteOtherData();

  Analysis& analysis_;
  const TraceOptions options_;
  GpuNames names_;
  Output& output_;
  TraceWriter writer_;
  TraceTracks tracks_;
  CallPaths paths_;
};

std::string Trace::CallArgs(const Launch& launch) {
  std::string args = launch.probe != 0 ? Format("\"matched\":\"{}\"", MatchText(launch.stack_match))
                                       : Format("\"correlation\":{}", launch.correlation_id);
  if (launch.return_value != 0) AppendFormat(args, ",\"error\":{}", launch.return_value);
  if (FateOf(launch) == LaunchFate::kCaptured) {
    AppendFormat(args, ",\"captured graph nodes\":{}", launch.graph_nodes);
  }
  if (launch.probe != 0) {
    const std::string kernel = LaunchedKernel(analysis_, names_, launch);
    if (!kernel.empty()) {
      args += ",\"kernel\":";
      AppendJsonString(args, kernel);
    }
  }
  if (launch.stack) {
    const CallTree::Node& call = paths_.tree()[paths_.OfLaunch(launch)];
    if (paths_.tree()[call.parent].parent) {  // not just the name of the thread
      args += ",\"caller\":";
      AppendJsonString(args, analysis_.frames[paths_.tree()[call.parent].frame].Label());
    }
  }
  return args;
}

void Trace::WriteCalls() {
  for (const Launch& launch : analysis_.correlation.launches) {
    if (output_.failed()) return;
    writer_.Slice(tracks_.Thread(OwnerOf(analysis_, launch)),
                  ApiNameOf(analysis_.api_names, launch), "cuda_api", launch.start_ns,
                  launch.end_ns, CallArgs(launch));
  }
}

void Trace::WriteWork() {
  std::vector<const GpuWork*> in_order;
  for (const GpuWork& work : analysis_.correlation.work) {
    if (work.timed) in_order.push_back(&work);
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const GpuWork* a, const GpuWork* b) { return a->start_ns < b->start_ns; });
  for (const GpuWork* work : in_order) {
    if (output_.failed()) return;
    WriteOneWork(*work);
  }
}

std::string Trace::WorkArgs(const GpuWork& work) {
  std::string args = TraceArgs(analysis_.model.events, work);
  if (work.launch == GpuWork::kNoLaunch) args += ",\"launch\":\"[unknown launch]\"";
  if (work.origin == NodeOrigin::kNoNode || options_.graph_stacks == GraphStacks::kLaunch) {
    return args;
  }
  std::string path;
  for (const FrameId frame : paths_.CapturedAt(work)) {
    if (!path.empty()) path += " > ";
    path += analysis_.frames[frame].Label();
  }
  args += ",\"captured_at\":";
  AppendJsonString(args, path);
  return args;
}

void Trace::WriteOneWork(const GpuWork& work) {
  const bool waits = work.kind == WorkKind::kSynchronization;
  const Owner owner = OwnerOf(analysis_, work);
  const TraceTrack track =
      tracks_.Gpu(owner.process, work.instance, work.device_id,
                  waits ? TraceTracks::GpuRow::kSynchronizations : TraceTracks::GpuRow::kStream,
                  waits ? 0 : work.stream_id, work.start_ns, work.end_ns);
  writer_.Slice(track, names_.Title(work), TraceCategory(work.kind), work.start_ns, work.end_ns,
                WorkArgs(work));
  if (work.launch == GpuWork::kNoLaunch || waits) return;
  const Launch& launch = analysis_.correlation.launches[work.launch];
  // Strictly inside the call's slice: at its very start some viewers miss it.
  const uint64_t from_ns = std::min(launch.start_ns + 1, launch.end_ns);
  writer_.Arrow(tracks_.Thread(OwnerOf(analysis_, launch)), from_ns, track, work.start_ns);
}

void Trace::WriteOverheads() {
  struct Timed {
    uint64_t start_ns;
    uint64_t end_ns;
    const Overhead* overhead;
  };
  std::vector<Timed> in_order;
  for (const Overhead& overhead : analysis_.model.events.overheads) {
    if (overhead.start_ns == 0 || overhead.end_ns < overhead.start_ns) continue;
    const ClockFit& clock = analysis_.clocks.Of(overhead.instance);
    const uint64_t start_ns = clock.ToMonotonic(overhead.start_ns);
    in_order.push_back(
        {start_ns, std::max(start_ns, clock.ToMonotonic(overhead.end_ns, start_ns)), &overhead});
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const Timed& a, const Timed& b) { return a.start_ns < b.start_ns; });
  for (const auto& [start_ns, end_ns, overhead] : in_order) {
    if (output_.failed()) return;
    const auto process = analysis_.correlation.processes.find(overhead->instance);
    const uint32_t pid = process == analysis_.correlation.processes.end() ? 0 : process->second.pid;
    writer_.Slice(tracks_.Overheads(analysis_.processes.At(pid, start_ns), start_ns, end_ns),
                  OverheadName(overhead->overhead_kind), "overhead", start_ns, end_ns,
                  Format("\"correlation\":{}", overhead->correlation_id));
  }
}

void Trace::WriteSamples() {
  const auto& samples = analysis_.model.events.cpu_samples;
  std::map<std::tuple<ProcessId, uint32_t>, std::vector<uint32_t>> by_thread;
  for (uint32_t i = 0; i < samples.size(); ++i) {
    by_thread[{analysis_.processes.At(samples[i].pid, samples[i].time_ns), samples[i].tid}]
        .push_back(i);
  }
  for (const auto& [thread, indexes] : by_thread) WriteThreadSamples(indexes);
}

// Viewers do not import stack samples from JSON. A sample becomes nested slices that last until
// the next sample, frames that it shares with the sample before go on.
void Trace::WriteThreadSamples(const std::vector<uint32_t>& indexes) {
  const auto& samples = analysis_.model.events.cpu_samples;
  const TraceTrack track = tracks_.Samples(OwnerOf(analysis_, samples[indexes.front()]));
  std::vector<PathId> open;
  std::vector<PathId> path;
  for (size_t i = 0; i < indexes.size() && !output_.failed(); ++i) {
    const CpuSample& sample = samples[indexes[i]];
    path.clear();
    for (PathId at = paths_.OfSample(sample); paths_.tree()[at].parent;
         at = paths_.tree()[at].parent) {
      path.push_back(at);
    }
    std::reverse(path.begin(), path.end());
    const size_t same = static_cast<size_t>(
        std::mismatch(open.begin(), open.end(), path.begin(), path.end()).first - open.begin());
    for (; open.size() > same; open.pop_back()) writer_.End(track, sample.time_ns);
    for (size_t depth = same; depth < path.size(); ++depth) {
      const NamedFrame& frame = analysis_.frames[paths_.tree()[path[depth]].frame];
      const bool is_kernel = frame.origin == FrameOrigin::kKernel;
      writer_.Begin(track, frame.Label(), is_kernel ? "cpu_kernel" : "cpu", sample.time_ns);
      open.push_back(path[depth]);
    }
    // The thread slept when the next sample is late: the slices end with this one's share.
    const uint64_t weight_ns = SampleWeightNs(analysis_.model, sample.source);
    const bool last = i + 1 == indexes.size();
    const uint64_t next_ns = last ? ~uint64_t{0} : samples[indexes[i + 1]].time_ns;
    if (next_ns - sample.time_ns > weight_ns + weight_ns / 2) {
      for (; !open.empty(); open.pop_back()) writer_.End(track, sample.time_ns + weight_ns);
    }
  }
  for (; !open.empty(); open.pop_back()) writer_.End(track, samples[indexes.back()].time_ns);
}

void Trace::WriteOtherData() {
  const Model& model = analysis_.model;
  std::string data;
  const auto member = [&](std::string_view key, std::string_view text) {
    if (!data.empty()) data += ',';
    AppendJsonString(data, key);
    data += ':';
    AppendJsonString(data, text);
  };
  if (!model.events.recording_info.empty()) {
    const RecordingInfo& info = model.events.recording_info.front();
    member("recorder", Format("xpu-record {}", model.Text(info.recorder_version)));
    member("command", model.Text(info.command_line));
    member("host", model.Text(info.host_name));
    member("kernel", model.Text(info.kernel_release));
  }
  for (const LedgerEntry& entry : BuildLedger(analysis_)) {
    std::string text = Format("{} {} ({})", entry.count, entry.what, SeverityName(entry.severity));
    for (const std::string& detail : entry.details) text += "; " + detail;
    if (!entry.advice.empty()) text += "; hint: " + entry.advice;
    member("loss " + entry.name, text);
  }
  writer_.Finish(data);
}

}  // namespace

void WriteChromeTrace(Analysis& analysis, const TraceOptions& options, Output& output) {
  Trace(analysis, options, output).Write();
}

}  // namespace xpu
