#include "report/views/timeline/timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/overheads.h"
#include "report/analysis/time_order.h"
#include "report/base/text.h"
#include "report/model/labels.h"
#include "report/model/recorded_time.h"
#include "report/query/ledger.h"
#include "report/query/unfinished_work.h"
#include "report/views/timeline/trace_counters.h"
#include "report/views/timeline/trace_names.h"
#include "report/views/timeline/trace_samples.h"
#include "report/views/timeline/trace_slices.h"
#include "report/views/timeline/trace_tracks.h"
#include "report/workload/steps.h"

namespace xpu {
namespace {

bool HasArrow(const GpuWork& work) {
  return work.launch != GpuWork::kNoLaunch && work.kind != WorkKind::kSynchronization;
}

class Timeline {
 public:
  Timeline(Analysis& analysis, const ViewOptions& options, uint64_t base_ns, TraceSink& sink,
           const Output& output)
      : analysis_(analysis),
        launches_(analysis.correlation.launches),
        options_(options),
        output_(output),
        base_ns_(base_ns),
        sink_(sink),
        tracks_(analysis, sink_),
        gpu_code_(analysis),
        paths_(analysis, {.graph_stacks = options.tree.paths.graph_stacks}),
        names_(analysis, paths_, options.tree.kernel_names, sink_),
        callers_(analysis, sink_),
        samples_(analysis, paths_, names_, tracks_, sink_),
        hits_(analysis, paths_, names_, tracks_, sink_),
        states_(analysis, paths_, names_, tracks_, sink_),
        collectives_(analysis, tracks_, sink_),
        critical_(analysis, paths_, options.tree.kernel_names, tracks_, sink_) {}

  void Write(std::string& notes);

 private:
  void OrderCalls();
  void OrderWork();
  void FindUnfinishedWork();
  // Returns the time of the first that was left out, when there were too many.
  std::optional<uint64_t> WriteSlices();
  // A step of a thread; the track is made with the first one.
  struct ShownStep {
    size_t series = 0;
    Owner thread;
    size_t number = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    StepCost cost;
  };
  void FindShownSteps(const std::vector<StepSeries>& all);
  void WriteStep(const ShownStep& step);
  void WritePause(const Pause& pause);
  void WriteRange(const NvtxRange& range);
  void WriteCall(uint32_t index);
  void WriteWork(const GpuWork& work);
  void WriteUnfinished(const GpuWork& work);
  void WriteOverhead(const DriverTime& overhead);
  // Returns what to say about it.
  std::string MarkCut(uint64_t cut_ns);
  std::vector<TraceSink::Fact> Facts(uint64_t bin_ns, std::string_view cut) const;

  Analysis& analysis_;
  const LaunchList& launches_;
  const ViewOptions& options_;
  const Output& output_;
  const uint64_t base_ns_;
  TraceSink& sink_;
  TraceTracks tracks_;
  TraceGpuCode gpu_code_;
  CallPaths paths_;
  TraceNames names_;
  TraceCallers callers_;
  TraceSamples samples_;
  TraceHits hits_;
  TraceStates states_;
  TraceCollectives collectives_;
  TraceCritical critical_;
  std::vector<uint32_t> calls_;      // in order of time, of launches_
  std::vector<uint32_t> work_;       // likewise, of the correlation's work
  std::vector<GpuWork> unfinished_;  // likewise, pending from start_ns to end_ns
  std::vector<DriverTime> overheads_;
  std::vector<Pause> pauses_;
  std::vector<ShownStep> steps_;
  std::map<size_t, TraceTrack> step_tracks_;  // by series
  // Where the slice of a launch is (tid 0: it is not written, or not yet), and its arrows.
  struct Call {
    TraceTrack track;
    uint32_t next_arrow = 0;
    uint32_t arrows = 0;  // that are to come
  };
  std::vector<Call> written_calls_;
  uint32_t arrows_ = 0;  // numbered so far
};

// The longest of those with one start comes first, which then encloses the others.
void Timeline::OrderCalls() {
  const auto calls = analysis_.Launches().places();
  calls_.assign(calls.begin(), calls.end());
  SortRuns(calls_, [this](uint32_t a, uint32_t b) {
    return std::tuple(launches_[a].start_ns, launches_[b].end_ns, a) <
           std::tuple(launches_[b].start_ns, launches_[a].end_ns, b);
  });
  written_calls_.resize(launches_.size());
}

void Timeline::OrderWork() {
  const GpuWorkList& all = analysis_.correlation.work;
  work_ =
      PlacesByTime(analysis_.Work(), [&](uint32_t i) { return all.Get<&GpuWork::start_ns>(i); });
  std::erase_if(work_, [&](uint32_t i) { return !all[i].timed; });
  for (const uint32_t i : work_) {
    if (HasArrow(all[i])) ++written_calls_[all[i].launch].arrows;
  }
}

// The oldest of each stream: the others wait for it.
void Timeline::FindUnfinishedWork() {
  for (const UnfinishedProcess& process : FindUnfinished(analysis_)) {
    for (const UnfinishedStream& stream : process.streams) {
      if (!analysis_.shown.work.Has(stream.work.front())) continue;
      GpuWork work = analysis_.correlation.work[stream.work.front()];
      work.start_ns = launches_.Get<&Launch::end_ns>(work.launch);
      work.end_ns = std::max(work.start_ns, process.until_ns);
      unfinished_.push_back(work);
    }
  }
  std::stable_sort(unfinished_.begin(), unfinished_.end(),
                   [](const GpuWork& a, const GpuWork& b) { return a.start_ns < b.start_ns; });
}

std::optional<uint64_t> Timeline::WriteSlices() {
  TimeOrder order;
  const auto start_of = [](const auto& event) { return event.start_ns; };
  const auto time_of = [](const auto& event) { return event.time_ns; };
  const auto add_numbered = [&](auto& list, auto write) {
    order.Add(
        Numbers(list.size()), [&list](size_t i) { return list.TimeOf(i); }, write);
  };
  const GpuWorkList& work = analysis_.correlation.work;
  order.Add(pauses_, start_of, [&](const Pause& pause) { WritePause(pause); });
  order.Add(analysis_.Ranges(), start_of, [&](const NvtxRange& range) { WriteRange(range); });
  order.Add(
      calls_, [&](uint32_t i) { return launches_.Get<&Launch::start_ns>(i); },
      [&](uint32_t i) { WriteCall(i); });
  order.Add(
      work_, [&](uint32_t i) { return work.Get<&GpuWork::start_ns>(i); },
      [&](uint32_t i) { WriteWork(work[i]); });
  order.Add(unfinished_, start_of, [&](const GpuWork& one) { WriteUnfinished(one); });
  order.Add(overheads_, start_of, [&](const DriverTime& overhead) { WriteOverhead(overhead); });
  order.Add(analysis_.CpuSamples(), time_of,
            [&](const Owned<CpuSample>& sample) { samples_.Write(sample); });
  order.Add(
      hits_.hits(), [](const auto* hit) { return hit->time_ns; },
      [&](const auto* hit) { hits_.Write(*hit); });
  add_numbered(states_, [&](size_t i) { states_.Write(i); });
  order.Add(steps_, start_of, [&](const ShownStep& step) { WriteStep(step); });
  add_numbered(collectives_, [&](size_t i) { collectives_.Write(i, arrows_); });
  add_numbered(critical_, [&](size_t i) { critical_.Write(i); });
  const std::optional<uint64_t> cut_ns = order.Visit([&] {
    const uint64_t slices = sink_.slices() + samples_.open_slices();
    return !output_.failed() && (options_.max_events == 0 || slices < options_.max_events);
  });
  return output_.failed() ? std::nullopt : cut_ns;
}

// Finds the steps with work that is shown.
void Timeline::FindShownSteps(const std::vector<StepSeries>& all) {
  for (size_t series = 0; series < all.size(); ++series) {
    const std::vector<StepCost> costs = StepCosts(analysis_, all[series]);
    for (size_t i = 0; i < costs.size(); ++i) {
      const Step& step = all[series].steps[i];
      if (costs[i].kernels + costs[i].graphs + costs[i].copies == 0) continue;
      steps_.push_back({series, all[series].thread, i, step.start_ns, step.end_ns, costs[i]});
    }
  }
  if (sink_.has_stacks() || options_.max_events != 0) {
    std::stable_sort(steps_.begin(), steps_.end(), [](const ShownStep& a, const ShownStep& b) {
      return a.start_ns < b.start_ns;
    });
    return;
  }
  // JSON needs no order, and has them where scripts found them before.
  for (const ShownStep& step : steps_) WriteStep(step);
  steps_.clear();
}

void Timeline::WriteStep(const ShownStep& step) {
  const auto [track, is_new] = step_tracks_.try_emplace(step.series);
  if (is_new) track->second = tracks_.Steps(step.thread);
  sink_.AdjacentSlice(track->second, sink_.Name(Format("step {}", step.number), "step"),
                      step.start_ns, step.end_ns);
  sink_.ArgThousandths("busy_us", step.cost.busy_ns);
  sink_.ArgThousandths("idle_us", step.cost.idle_ns);
  sink_.Arg("kernels", step.cost.kernels);
  sink_.Arg("bytes", step.cost.bytes);
}

void Timeline::WritePause(const Pause& pause) {
  sink_.Slice(tracks_.Recording(), sink_.Name("paused", "recording"), pause.start_ns, pause.end_ns);
  sink_.ArgText("by", analysis_.model.Text(pause.cause));
}

void Timeline::WriteRange(const NvtxRange& range) {
  Owner owner = range.owner();
  if (range.style == NvtxStyle::kStartEnd) owner.tid = 0;
  sink_.Slice(tracks_.Ranges(owner, range.start_ns, range.end_ns),
              sink_.Name(analysis_.nvtx.LabelOf(range), "nvtx"), range.start_ns, range.end_ns);
  WriteRangeArgs(analysis_, range, sink_);
}

void Timeline::WriteCall(uint32_t index) {
  const Launch& launch = launches_[index];
  const TraceTrack track = tracks_.Calls(launch.owner(), launch.start_ns, launch.end_ns);
  Call& call = written_calls_[index];
  call.track = track;
  sink_.Slice(track, names_.OfCall(launch), launch.start_ns, launch.end_ns);
  if (call.arrows != 0) {
    call.next_arrow = arrows_ + 1;
    arrows_ += call.arrows;
    sink_.BeginArrows(call.next_arrow, call.arrows);
  }
  const bool is_seen = launch.stack || launch.python_stack;
  if (sink_.has_stacks() && is_seen) sink_.Stack(paths_.OfLaunch(launch), paths_.tree());
  WriteCallArgs(launch, sink_);
  const std::string kernel = names_.KernelOf(launch);
  if (!kernel.empty()) sink_.ArgText("kernel", kernel);
  const TraceCallers::Callers& callers = callers_.Of(launch);
  if (!callers.innermost.empty()) sink_.ArgText("caller", callers.innermost);
  if (!callers.python.empty()) sink_.ArgText("python", callers.python);
  if (!callers.script.empty()) sink_.ArgText("script", callers.script);
}

void Timeline::WriteWork(const GpuWork& work) {
  const TraceTrack track = tracks_.Work(work);
  sink_.Slice(track, names_.OfWork(work), work.start_ns, work.end_ns);
  WriteWorkArgs(analysis_, work, sink_);
  gpu_code_.WriteArgs(work, sink_);
  if (work.origin != NodeOrigin::kNoNode &&
      options_.tree.paths.graph_stacks != GraphStacks::kLaunch) {
    sink_.ArgText("captured_at", names_.CapturedAt(work));
  }
  if (!HasArrow(work)) return;
  // An arrow back in time, where the clocks are off, is one that viewers do not draw.
  Call& call = written_calls_[work.launch];
  if (call.track.tid == 0) return;
  const Launch& launch = launches_[work.launch];
  // Strictly inside the call's slice: at its very start some viewers miss it.
  const uint64_t from_ns = std::min({launch.start_ns + 1, launch.end_ns, work.start_ns});
  sink_.Arrow("launch", call.next_arrow++, call.track, from_ns, track, work.start_ns);
}

void Timeline::WriteUnfinished(const GpuWork& work) {
  sink_.Slice(tracks_.Work(work),
              sink_.Name(Format("[unfinished] {}", names_.TitleOf(work)), "unfinished"),
              work.start_ns, work.end_ns);
  WriteWorkArgs(analysis_, work, sink_);
}

void Timeline::WriteOverhead(const DriverTime& overhead) {
  sink_.Slice(tracks_.Overheads(overhead.owner.process, overhead.start_ns, overhead.end_ns),
              sink_.Name(TitleOf(overhead), "overhead"), overhead.start_ns, overhead.end_ns);
  WriteOverheadArgs(analysis_, overhead, sink_);
}

std::string Timeline::MarkCut(uint64_t cut_ns) {
  const std::string time = TimeSince(base_ns_, cut_ns);
  const std::string what =
      Format("cut after {} events, at {}", WithThousands(sink_.slices()), time);
  sink_.Mark(what + ": xpu-report --max-events", cut_ns);
  return Format("the trace is {} (--max-events)\n  hint: --time {}- shows what follows\n", what,
                time);
}

void Timeline::Write(std::string& notes) {
  paths_.NameAhead({.samples = true, .launches = true, .probe_hits = true, .off_cpu_waits = true});
  states_.Find();
  OrderCalls();
  OrderWork();
  FindUnfinishedWork();
  overheads_ = DriverTimes(analysis_);
  pauses_ = FindPauses(analysis_.model);
  // A part of the events may lack the launches that make a step.
  if (analysis_.shown.scale == 1) {
    const std::vector<StepSeries> steps = FindSteps(analysis_, options_.steps.definition);
    FindShownSteps(steps);
    collectives_.Find();
    critical_.Find(steps, options_.steps.range);
  }
  const std::optional<uint64_t> cut_ns = WriteSlices();
  samples_.Finish();
  // Counters need every event.
  const uint64_t bin_ns =
      analysis_.shown.scale > 1
          ? 0
          : WriteTraceCounters(analysis_, cut_ns.value_or(~uint64_t{0}), tracks_, sink_);
  std::string cut;
  if (cut_ns) cut = MarkCut(*cut_ns);
  sink_.Finish(Facts(bin_ns, cut));
  notes += cut;
}

std::vector<TraceSink::Fact> Timeline::Facts(uint64_t bin_ns, std::string_view cut) const {
  const Model& model = analysis_.model;
  std::vector<TraceSink::Fact> facts;
  const auto fact = [&](std::string_view key, std::string_view text) {
    facts.emplace_back(key, text);
  };
  if (!model.events.recording_info.empty()) {
    const RecordingInfo& info = model.events.recording_info.front();
    fact("recorder", Format("xpu-record {}", model.Text(info.recorder_version)));
    fact("command", model.Text(info.command_line));
    fact("host", model.Text(info.host_name));
    fact("kernel", model.Text(info.kernel_release));
    for (const auto& [key, value] : LabelsOf(model.Text(info.settings))) {
      fact("label " + key, value);
    }
  }
  if (!cut.empty()) fact("cut", cut.substr(0, cut.find('\n')));
  if (analysis_.shown.scale > 1) fact("sample", Format("1/{}", analysis_.shown.scale));
  if (bin_ns != 0) fact("counters", "averages over " + HumanDuration(bin_ns));
  for (const LedgerEntry& entry : BuildLedger(analysis_)) {
    std::string text = Format("{} {} ({})", entry.count, entry.what, SeverityName(entry));
    for (const std::string& detail : entry.details) text += "; " + detail;
    if (!entry.advice.empty()) text += "; hint: " + entry.advice;
    fact((LosesData(entry) ? "loss " : "note ") + entry.name, text);
  }
  return facts;
}

}  // namespace

uint64_t FirstTimeOf(const Analysis& analysis) {
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

void WriteTimeline(Analysis& analysis, const ViewOptions& options, uint64_t base_ns,
                   TraceSink& sink, const Output& output, std::string& notes) {
  Timeline(analysis, options, base_ns, sink, output).Write(notes);
}

}  // namespace xpu
