#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/overheads.h"
#include "report/model/recorded_time.h"
#include "report/output/text.h"
#include "report/query/ledger.h"
#include "report/views/chrome_trace/trace_args.h"
#include "report/views/chrome_trace/trace_counters.h"
#include "report/views/chrome_trace/trace_names.h"
#include "report/views/chrome_trace/trace_samples.h"
#include "report/views/chrome_trace/trace_states.h"
#include "report/views/chrome_trace/trace_tracks.h"
#include "report/views/chrome_trace/trace_writer.h"
#include "report/views/view.h"
#include "report/workload/steps.h"

namespace xpu {
namespace {

uint64_t FirstTime(const Analysis& analysis) {
  const LoadedEvents& events = analysis.model.events;
  uint64_t first = ~uint64_t{0};
  if (!events.recording_info.empty()) first = events.recording_info.front().start_ns;
  const auto first_of = [&](const auto& list) {
    if (!list.empty()) first = std::min(first, list.front().time_ns);
  };
  first_of(analysis.CpuSamples());
  first_of(analysis.ProbeHits());
  for (const OffCpuWait& wait : analysis.OffCpuWaits()) first = std::min(first, wait.start_ns);
  for (const NvtxRange& range : analysis.Ranges()) first = std::min(first, range.start_ns);
  for (const Launch& launch : analysis.Launches()) {
    first = std::min(first, launch.start_ns);
  }
  for (const GpuWork& work : analysis.Work()) {
    if (work.timed) first = std::min(first, work.start_ns);
  }
  const std::vector<DriverTime> overheads = DriverTimes(analysis);
  if (!overheads.empty()) first = std::min(first, overheads.front().start_ns);
  return first == ~uint64_t{0} ? 0 : first;
}

class ChromeTrace {
 public:
  ChromeTrace(Analysis& analysis, const TraceOptions& options, Output& output)
      : analysis_(analysis),
        launches_(analysis.correlation.launches),
        options_(options),
        output_(output),
        base_ns_(FirstTime(analysis)),
        writer_(output, base_ns_),
        tracks_(analysis, writer_),
        paths_(analysis, {.graph_stacks = options.graph_stacks}),
        names_(analysis, paths_, options.kernel_names),
        callers_(analysis),
        samples_(analysis, paths_, names_, tracks_, writer_),
        hits_(analysis, paths_, names_, tracks_, writer_),
        states_(analysis, paths_, names_, tracks_, writer_) {}

  void Write(std::string& notes);

 private:
  // What is written in order of time: each sort comes in that order already. Samples and ranges
  // are at places of all that the trace has, so that they need no list of their own.
  enum Sort : size_t { kRanges, kCalls, kWork, kOverheads, kSamples, kHits, kStates, kSorts };

  void OrderCalls();
  void OrderWork();
  size_t SizeOf(Sort sort) const;
  // The first that is shown, from `at` on.
  size_t FirstFrom(Sort sort, size_t at) const;
  uint64_t TimeOf(Sort sort, size_t at) const;
  // Returns the time of the first that was left out, when there were too many.
  std::optional<uint64_t> WriteSlices();
  void WriteSlice(Sort sort, size_t at);
  void WriteSteps();
  void WriteRange(const NvtxRange& range);
  void WriteCall(uint32_t index);
  void WriteWork(const GpuWork& work);
  void WriteOverhead(const DriverTime& overhead);
  // Returns what to say about it.
  std::string MarkCut(uint64_t cut_ns);
  std::string OtherData(uint64_t bucket_ns, std::string_view cut) const;

  Analysis& analysis_;
  const LaunchList& launches_;
  const TraceOptions options_;
  Output& output_;
  const uint64_t base_ns_;
  TraceWriter writer_;
  TraceTracks tracks_;
  CallPaths paths_;
  TraceNames names_;
  TraceCallers callers_;
  TraceSamples samples_;
  TraceHits hits_;
  TraceStates states_;
  std::vector<uint32_t> calls_;  // in order of time, of launches_
  std::vector<uint32_t> work_;   // likewise, of the correlation's work
  std::vector<DriverTime> overheads_;
  std::vector<TraceTrack> call_tracks_;  // by launch; none: it is not written (yet)
};

// Of one start the longest first, which then encloses the others.
void ChromeTrace::OrderCalls() {
  const auto calls = analysis_.Launches().places();
  calls_.assign(calls.begin(), calls.end());
  std::sort(calls_.begin(), calls_.end(), [this](uint32_t a, uint32_t b) {
    return std::tuple(launches_[a].start_ns, launches_[b].end_ns, a) <
           std::tuple(launches_[b].start_ns, launches_[a].end_ns, b);
  });
  call_tracks_.resize(launches_.size());
}

void ChromeTrace::OrderWork() {
  const GpuWorkList& all = analysis_.correlation.work;
  for (const uint32_t i : analysis_.Work().places()) {
    if (all[i].timed) work_.push_back(i);
  }
  std::sort(work_.begin(), work_.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(all[a].start_ns, a) < std::tuple(all[b].start_ns, b);
  });
}

size_t ChromeTrace::SizeOf(Sort sort) const {
  switch (sort) {
    case kRanges:
      return analysis_.nvtx.all().size();
    case kCalls:
      return calls_.size();
    case kWork:
      return work_.size();
    case kOverheads:
      return overheads_.size();
    case kSamples:
      return analysis_.model.events.cpu_samples.size();
    case kHits:
      return hits_.hits().size();
    case kStates:
      return states_.size();
    case kSorts:
      break;
  }
  return 0;
}

size_t ChromeTrace::FirstFrom(Sort sort, size_t at) const {
  if (sort == kRanges) return analysis_.Ranges().FirstFrom(at);
  return sort == kSamples ? analysis_.CpuSamples().FirstFrom(at) : at;
}

uint64_t ChromeTrace::TimeOf(Sort sort, size_t at) const {
  switch (sort) {
    case kRanges:
      return analysis_.nvtx.all()[at].start_ns;
    case kCalls:
      return launches_[calls_[at]].start_ns;
    case kWork:
      return analysis_.correlation.work[work_[at]].start_ns;
    case kOverheads:
      return overheads_[at].start_ns;
    case kSamples:
      return analysis_.model.events.cpu_samples[at].time_ns;
    case kHits:
      return hits_.hits()[at]->time_ns;
    case kStates:
      return states_.TimeOf(at);
    case kSorts:
      break;
  }
  return 0;
}

void ChromeTrace::WriteSlice(Sort sort, size_t at) {
  switch (sort) {
    case kRanges:
      return WriteRange(analysis_.nvtx.all()[at]);
    case kCalls:
      return WriteCall(calls_[at]);
    case kWork:
      return WriteWork(analysis_.correlation.work[work_[at]]);
    case kOverheads:
      return WriteOverhead(overheads_[at]);
    case kSamples:
      return samples_.Write(analysis_.model.events.cpu_samples[at]);
    case kHits:
      return hits_.Write(*hits_.hits()[at]);
    case kStates:
      return states_.Write(at);
    case kSorts:
      break;
  }
}

std::optional<uint64_t> ChromeTrace::WriteSlices() {
  std::array<size_t, kSorts> at{};
  for (const Sort sort : {kRanges, kSamples}) at[sort] = FirstFrom(sort, 0);
  while (!output_.failed()) {
    std::optional<std::pair<uint64_t, Sort>> next;
    for (const Sort sort : {kRanges, kCalls, kWork, kOverheads, kSamples, kHits, kStates}) {
      if (at[sort] == SizeOf(sort)) continue;
      const uint64_t time_ns = TimeOf(sort, at[sort]);
      if (!next || time_ns < next->first) next = {time_ns, sort};
    }
    if (!next) break;
    const uint64_t slices = writer_.slices() + samples_.open_slices();
    if (options_.max_events != 0 && slices >= options_.max_events) return next->first;
    const Sort sort = next->second;
    WriteSlice(sort, at[sort]);
    at[sort] = FirstFrom(sort, at[sort] + 1);
  }
  return std::nullopt;
}

void ChromeTrace::WriteRange(const NvtxRange& range) {
  Owner owner = OwnerOf(analysis_, range);
  if (range.style == NvtxStyle::kStartEnd) owner.tid = 0;
  writer_.Slice(tracks_.Ranges(owner, range.start_ns, range.end_ns),
                TraceName(analysis_.nvtx.LabelOf(range), "nvtx"), range.start_ns, range.end_ns);
  WriteRangeArgs(analysis_, range, writer_);
}

// Those with work that is shown.
void ChromeTrace::WriteSteps() {
  for (const StepSeries& series : FindSteps(analysis_, options_.steps)) {
    const std::vector<StepCost> costs = StepCosts(analysis_, series);
    std::optional<TraceTrack> track;
    for (size_t i = 0; i < costs.size(); ++i) {
      const Step& step = series.steps[i];
      if (costs[i].kernels + costs[i].graphs + costs[i].copies == 0) continue;
      if (!track) track = tracks_.Steps(series.thread);
      writer_.Slice(*track, TraceName(Format("step {}", i), "step"), step.begin_ns, step.end_ns);
      writer_.ArgThousandths("busy_us", costs[i].busy_ns);
      writer_.ArgThousandths("idle_us", costs[i].idle_ns);
      writer_.Arg("kernels", costs[i].kernels);
      writer_.Arg("bytes", costs[i].bytes);
    }
  }
}

void ChromeTrace::WriteCall(uint32_t index) {
  const Launch& launch = launches_[index];
  const TraceTrack track =
      tracks_.Calls(OwnerOf(analysis_, launch), launch.start_ns, launch.end_ns);
  call_tracks_[index] = track;
  writer_.Slice(track, names_.OfCall(launch), launch.start_ns, launch.end_ns);
  WriteCallArgs(launch, writer_);
  const std::string kernel = names_.KernelOf(launch);
  if (!kernel.empty()) writer_.ArgText("kernel", kernel);
  const TraceCallers::Callers& callers = callers_.Of(launch);
  if (!callers.innermost.empty()) writer_.ArgJson("caller", callers.innermost);
  if (!callers.python.empty()) writer_.ArgJson("python", callers.python);
  if (!callers.script.empty()) writer_.ArgJson("script", callers.script);
}

void ChromeTrace::WriteWork(const GpuWork& work) {
  const TraceTrack track = tracks_.Work(work);
  writer_.Slice(track, names_.OfWork(work), work.start_ns, work.end_ns);
  WriteWorkArgs(analysis_, work, writer_);
  if (work.origin != NodeOrigin::kNoNode && options_.graph_stacks != GraphStacks::kLaunch) {
    writer_.ArgJson("captured_at", names_.CapturedAt(work));
  }
  if (work.launch == GpuWork::kNoLaunch || work.kind == WorkKind::kSynchronization) return;
  // An arrow back in time, where the clocks are off, is one that viewers do not draw.
  if (call_tracks_[work.launch].tid == 0) return;
  const Launch& launch = launches_[work.launch];
  // Strictly inside the call's slice: at its very start some viewers miss it.
  const uint64_t from_ns = std::min({launch.start_ns + 1, launch.end_ns, work.start_ns});
  writer_.Arrow("launch", call_tracks_[work.launch], from_ns, track, work.start_ns);
}

void ChromeTrace::WriteOverhead(const DriverTime& overhead) {
  const ProcessId process = OwnerOf(analysis_, overhead).process;
  writer_.Slice(tracks_.Overheads(process, overhead.start_ns, overhead.end_ns),
                TraceName(TitleOf(overhead), "overhead"), overhead.start_ns, overhead.end_ns);
  WriteOverheadArgs(analysis_, overhead, writer_);
}

std::string ChromeTrace::MarkCut(uint64_t cut_ns) {
  const uint64_t since_start_us = (cut_ns - std::min(cut_ns, base_ns_)) / 1000;
  const std::string time =
      Format("{}.{:06}s", since_start_us / 1'000'000, since_start_us % 1'000'000);
  const std::string what =
      Format("cut after {} events, at {}", WithThousands(writer_.slices()), time);
  writer_.Mark(what + ": xpu-report --max-events", cut_ns);
  return Format("the trace is {} (--max-events)\n  hint: --time {}- shows what follows\n", what,
                time);
}

void ChromeTrace::Write(std::string& notes) {
  paths_.NameAhead({.samples = true, .launches = true, .probe_hits = true, .off_cpu_waits = true});
  states_.Find();
  OrderCalls();
  OrderWork();
  overheads_ = DriverTimes(analysis_);
  for (const Pause& pause : FindPauses(analysis_.model)) {
    writer_.Slice(tracks_.Recording(), TraceName("paused", "recording"), pause.start_ns,
                  pause.end_ns);
    writer_.ArgText("by", analysis_.model.Text(pause.cause));
  }
  // A part of the events may lack the launches that make a step.
  if (analysis_.shown.scale == 1) WriteSteps();
  const std::optional<uint64_t> cut_ns = WriteSlices();
  samples_.Finish();
  // Counters need every event.
  const uint64_t bucket_ns =
      analysis_.shown.scale > 1
          ? 0
          : WriteTraceCounters(analysis_, cut_ns.value_or(~uint64_t{0}), tracks_, writer_);
  std::string cut;
  if (cut_ns) cut = MarkCut(*cut_ns);
  writer_.Finish(OtherData(bucket_ns, cut));
  notes += cut;
}

std::string ChromeTrace::OtherData(uint64_t bucket_ns, std::string_view cut) const {
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
  if (!cut.empty()) member("cut", cut.substr(0, cut.find('\n')));
  if (analysis_.shown.scale > 1) member("sample", Format("1/{}", analysis_.shown.scale));
  if (bucket_ns != 0) member("counters", "averages over " + HumanDuration(bucket_ns));
  for (const LedgerEntry& entry : BuildLedger(analysis_)) {
    std::string text = Format("{} {} ({})", entry.count, entry.what, SeverityName(entry));
    for (const std::string& detail : entry.details) text += "; " + detail;
    if (!entry.advice.empty()) text += "; hint: " + entry.advice;
    member((LosesData(entry) ? "loss " : "note ") + entry.name, text);
  }
  return data;
}

}  // namespace

void WriteChromeTrace(Analysis& analysis, const TraceOptions& options, Output& output,
                      std::string& notes) {
  ChromeTrace(analysis, options, output).Write(notes);
}

View ChromeTraceView() {
  return {
      .option = "--chrome-trace",
      .help = "JSON for Perfetto and chrome://tracing",
      .takes_sample = true,
      .is_for_reading = false,
      .shows_lines = true,
      .file_name_end = ".json",
      .events = View::Events::kOneClockAndMoments,
      .write =
          [](const ViewInput& input) {
            WriteChromeTrace(input.analysis, input.options.trace, input.output, input.notes);
          },
  };
}

}  // namespace xpu
