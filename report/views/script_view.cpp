#include <algorithm>
#include <string>
#include <vector>

#include "format/base/text.h"
#include "format/probe_names.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/analysis/overheads.h"
#include "report/analysis/sampled_events.h"
#include "report/analysis/time_order.h"
#include "report/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/off_cpu_waits.h"
#include "report/trace/correlation.h"
#include "report/trace/user_probes.h"
#include "report/views/view.h"

namespace xpu {
namespace {

// Without spaces, which separate the columns.
std::string AsWord(std::string_view name) {
  std::string word = ToFoldedFrame(name);
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

class Script {
 public:
  Script(Analysis& analysis, const ViewOptions& options, Output& output)
      : analysis_(analysis),
        output_(output),
        paths_(analysis, {.graph_stacks = options.tree.paths.graph_stacks}),
        leaves_(analysis, options.tree.kernel_names),
        names_events_(FindSampledEvents(analysis.model, analysis.shown).size() > 1 ||
                      !SamplesCountTime(analysis.model, analysis.shown)),
        weights_(analysis.model, analysis.shown),
        probes_(analysis.model),
        overheads_(DriverTimes(analysis)),
        start_ns_(StartOf(analysis.model)) {
    paths_.NameAhead(
        {.samples = true, .launches = true, .probe_hits = true, .off_cpu_waits = true});
  }

  void Write();

 private:
  void AppendSample(const Owned<CpuSample>& sample);
  void AppendHit(const Owned<ProbeHit>& hit);
  void AppendCall(const Launch& launch);
  void AppendWork(const GpuWork& work);
  void AppendBytes(const GpuWork& work);
  void AppendOverhead(const DriverTime& overhead);
  void AppendWait(const Owned<OffCpuWait>& wait);
  // The columns before the stack, with the space after them.
  void AppendColumns(uint64_t time_ns, const Owner& owner, std::string_view cpu);
  void AppendStack(PathId path);
  const std::string& FrameText(FrameId frame);

  Analysis& analysis_;
  Output& output_;
  CallPaths paths_;
  GpuLeaves leaves_;
  const bool names_events_;  // of samples: it is not plain which one they are of
  const SampleWeights weights_;
  const UserProbes probes_;
  const std::vector<DriverTime> overheads_;
  const uint64_t start_ns_;
  std::vector<std::string> frame_texts_;  // by frame id - 1, empty: not asked for yet
  std::vector<FrameId> stack_;
  std::string line_;
};

void Script::Write() {
  TimeOrder order;
  uint64_t total = 0;
  uint64_t done = 0;
  const auto add = [&](const auto& list, auto time_of, auto append) {
    total += list.size();
    order.Add(list, time_of, [this, append, &done, &total](const auto& event) {
      line_.clear();
      append(event);
      line_ += '\n';
      output_.Write(ShownText::Lines(line_));
      output_.SetShare(++done, total);
    });
  };
  const auto start_of = [](const auto& event) { return event.start_ns; };
  const auto time_of = [](const auto& event) { return event.time_ns; };
  add(analysis_.CpuSamples(), time_of, [&](const auto& sample) { AppendSample(sample); });
  std::vector<const Owned<ProbeHit>*> hits;
  for (const Owned<ProbeHit>& hit : analysis_.ProbeHits()) {
    if (probes_.Of(hit) != nullptr) hits.push_back(&hit);
  }
  add(
      hits, [](const auto* hit) { return hit->time_ns; },
      [&](const auto* hit) { AppendHit(*hit); });
  const LaunchList& launches = analysis_.correlation.launches;
  const auto called_ns = [&](uint32_t i) { return launches.Get<&Launch::start_ns>(i); };
  const std::vector<uint32_t> calls = PlacesByTime(analysis_.Launches(), called_ns);
  add(calls, called_ns, [&](uint32_t i) { AppendCall(launches[i]); });
  const GpuWorkList& all = analysis_.correlation.work;
  const auto placed_ns = [&](uint32_t i) {
    return all.Get<&GpuWork::timed>(i) ? all.Get<&GpuWork::start_ns>(i)
                                       : all.Get<&GpuWork::called_ns>(i);
  };
  const std::vector<uint32_t> work = PlacesByTime(analysis_.Work(), placed_ns);
  add(work, placed_ns, [&](uint32_t i) { AppendWork(all[i]); });
  add(overheads_, start_of, [&](const DriverTime& overhead) { AppendOverhead(overhead); });
  add(analysis_.OffCpuWaits(), start_of, [&](const auto& wait) { AppendWait(wait); });
  order.Visit([&] { return !output_.failed(); });
}

void Script::AppendColumns(uint64_t time_ns, const Owner& owner, std::string_view cpu) {
  const std::string comm = AsWord(analysis_.tracks.NameOf(owner));
  const std::string_view sign = time_ns < start_ns_ ? "-" : "";
  const uint64_t distance_ns = time_ns < start_ns_ ? start_ns_ - time_ns : time_ns - start_ns_;
  AppendFormat(line_, "{}{} {} {} {} {} ", sign, distance_ns, comm, owner.pid, owner.tid, cpu);
}

const std::string& Script::FrameText(FrameId frame) {
  if (frame_texts_.size() < frame.value) frame_texts_.resize(analysis_.frames.size());
  std::string& text = frame_texts_[frame.value - 1];
  if (text.empty()) text = ToFoldedFrame(analysis_.frames[frame].Label());
  return text;
}

// Without the name of the thread, which has a column.
void Script::AppendStack(PathId path) {
  const CallTree& tree = paths_.tree();
  stack_.clear();
  for (; tree[path].parent; path = tree[path].parent) stack_.push_back(tree[path].frame);
  for (size_t i = stack_.size(); i-- > 0;) {
    line_ += FrameText(stack_[i]);
    if (i > 0) line_ += ';';
  }
}

void Script::AppendSample(const Owned<CpuSample>& sample) {
  AppendColumns(sample.time_ns, sample.owner(), std::to_string(sample.cpu));
  AppendStack(paths_.Of(sample));
  if (!names_events_) return;
  AppendFormat(line_, "\tevent={} weight={}", AsWord(weights_.NameOf(sample)), weights_.Of(sample));
}

void Script::AppendHit(const Owned<ProbeHit>& hit) {
  AppendColumns(hit.time_ns, hit.owner(), std::to_string(hit.cpu));
  AppendStack(paths_.Of(hit));
  const Probe& probe = *probes_.Of(hit);
  AppendFormat(line_, "\tevent={} probe={}", ProbeKindName(probe.kind),
               AsWord(probes_.PlaceOf(probe)));
  if (IsReturn(probe)) AppendFormat(line_, " result={}", hit.return_value);
}

void Script::AppendCall(const Launch& launch) {
  AppendColumns(launch.start_ns, launch.owner(), "-");
  AppendStack(paths_.OfLaunch(launch));
  AppendFormat(line_, "\tevent=api duration_ns={} correlation={} result={}",
               launch.end_ns - launch.start_ns, launch.correlation_id, launch.return_value);
}

void Script::AppendWork(const GpuWork& work) {
  AppendColumns(work.placed_ns(), work.owner(), "-");
  AppendStack(paths_.tree().Child(paths_.OfWork(work), leaves_.Of(work)));
  AppendFormat(line_, "\tevent={} duration_ns={} correlation={} gpu={} stream={}",
               WorkKindName(work.kind), work.duration_ns, work.correlation_id, work.gpu,
               work.stream_id == kNoSynchronizedObject ? "-" : std::to_string(work.stream_id));
  AppendBytes(work);
  if (!work.timed) line_ += " timed=no";
}

void Script::AppendBytes(const GpuWork& work) {
  const LoadedEvents& events = analysis_.model.events;
  if (work.kind == WorkKind::kMemcpy) {
    AppendFormat(line_, " bytes={}", events.memcpys.Get<&Memcpy::size_bytes>(work.index));
  } else if (work.kind == WorkKind::kMemset) {
    AppendFormat(line_, " bytes={}", events.memsets.Get<&Memset::size_bytes>(work.index));
  }
}

// Without a stack: that of the call in which it was is the call's.
void Script::AppendOverhead(const DriverTime& overhead) {
  AppendColumns(overhead.start_ns, overhead.owner, "-");
  if (overhead.jit != nullptr) {
    AppendFormat(line_, "\tevent=jit operation={} code={} cache_bytes={}",
                 AsWord(JitOperationName(overhead.jit->operation)),
                 AsWord(JitEntryName(overhead.jit->entry_kind)), overhead.jit->cache_size_bytes);
  } else {
    AppendFormat(line_, "\tevent=overhead kind={}",
                 AsWord(OverheadName(overhead.overhead->overhead_kind)));
  }
  AppendFormat(line_, " duration_ns={} correlation={}", overhead.end_ns - overhead.start_ns,
               overhead.correlation_id());
}

void Script::AppendWait(const Owned<OffCpuWait>& wait) {
  AppendColumns(wait.start_ns, wait.owner(), "-");
  AppendStack(paths_.OfWait(wait));
  const OffCpuTimes times = TimesOf(wait);
  AppendFormat(line_, "\tevent=off_cpu reason={} duration_ns={} runnable_ns={}",
               AsWord(WaitName(wait)), times.blocked_ns + times.runnable_ns, times.runnable_ns);
  if (wait.waker != OffCpuWaker::kUnknown) {
    AppendFormat(line_, " waker={}", AsWord(WakerName(analysis_, wait)));
  }
  if (wait.is_open) line_ += " open=yes";
}

}  // namespace

void WriteScript(Analysis& analysis, const ViewOptions& options, Output& output) {
  Script(analysis, options, output).Write();
}

View ScriptView() {
  return {
      .option = "--script",
      .help = "one line per event, ordered by time",
      .takes_sample = true,
      .events = View::Events::kAll,
      .write =
          [](const ViewInput& input) { WriteScript(input.analysis, input.options, input.output); },
  };
}

}  // namespace xpu
