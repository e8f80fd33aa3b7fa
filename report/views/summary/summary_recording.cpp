#include <algorithm>
#include <csignal>
#include <ctime>
#include <span>
#include <string_view>
#include <unordered_set>

#include <sys/wait.h>

#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"
#include "report/base/text.h"
#include "report/model/labels.h"
#include "report/model/recorded_time.h"
#include "report/query/ledger.h"
#include "report/query/statistics.h"
#include "report/views/summary/summary_sections.h"

namespace xpu {
namespace {

constexpr size_t kUnsymbolizedRows = 5;
constexpr uint64_t kSecondNs = 1'000'000'000;

// A program that only waits has no sample of a clock that counts CPU time, which looks like a
// recording that failed.
void WriteNotRunning(const Analysis& analysis, const SampledEvent& event, SummaryText& text) {
  const bool is_whole =
      analysis.shown.filter_text.empty() && !analysis.model.events.recording_end.empty();
  if (!event.is_time || event.samples > 0 || !is_whole) return;
  // It may have been off all the time.
  if (PausedNs(FindPauses(analysis.model), 0, UINT64_MAX) >= RunTimeNs(analysis.model)) return;
  text.Paragraph("",
                 "hint: no thread was running on a CPU when a sample was due: the program slept, "
                 "waited or ended too soon");
}

// A program that ends within a few periods of the clock has hardly a sample, however busy it was.
void WriteTooShort(const Analysis& analysis, const SampledEvent& event, SummaryText& text) {
  constexpr uint64_t kFewSamples = 10;
  constexpr uint64_t kFewPeriods = 10;
  constexpr uint64_t kWantedSamples = 1000;
  constexpr uint64_t kHighestHz = 10'000;
  const uint64_t run_ns = RunTimeNs(analysis.model);
  if (!event.is_time || event.frequency_hz == 0 || event.samples >= kFewSamples) return;
  if (run_ns == 0 || run_ns / kFewPeriods >= kSecondNs / event.frequency_hz) return;
  uint64_t better_hz = 1000;
  while (better_hz < kHighestHz && better_hz * run_ns < kWantedSamples * kSecondNs) better_hz *= 2;
  better_hz = std::min(better_hz, kHighestHz);
  if (better_hz <= event.frequency_hz) return;
  text.Paragraph(
      "", Format("hint: the recording lasted only {}, with a sample every {}: xpu-record -F {} "
                 "takes more",
                 HumanDuration(run_ns), HumanDuration(kSecondNs / event.frequency_hz), better_hz));
}

void WriteSamples(const Analysis& analysis, SummaryText& text) {
  const std::vector<SampledEvent> sampled = analysis.sampled_events.empty()
                                                ? FindSampledEvents(analysis.model, analysis.shown)
                                                : analysis.sampled_events;
  if (sampled.empty()) text.Line("samples", WithThousands(analysis.CpuSamples().size()));
  for (const SampledEvent& event : sampled) {
    std::string samples = Format("{} ({})", WithThousands(event.samples), event.Text());
    // The clock's own weight is below, as the time of the functions. Samples at a frequency say how
    // often the event came while the kernel looked for the period, not how often in all.
    if (!event.is_time && event.frequency_hz == 0) {
      AppendFormat(samples, ": {} in total", WithThousands(event.weight));
    }
    text.Line("samples", samples);
    WriteNotRunning(analysis, event, text);
    WriteTooShort(analysis, event, text);
    if (event.is_uncounted && event.samples > 0) {
      text.Paragraph("",
                     Format("hint: samples at a frequency do not count {}; xpu-record -e {} -c 1 "
                            "counts each one",
                            event.name, event.name));
    }
  }
  // This line is about the whole recording: how well it went.
  const std::string stacks =
      analysis.shown.filter_text.empty()
          ? StackCountsText(analysis.model.events, analysis.shown.events.cpu_samples)
          : "";
  if (!stacks.empty()) text.Paragraph("stacks", stacks);
}

// "; 9.8 % in the steady state of GPU 0": start-up hides what it costs the program's loop. Empty
// where the GPU has none of its own, or too few samples in it.
std::string ProfilerInSteadyState(Analysis& analysis, const std::vector<GpuBusy>& gpus) {
  constexpr uint64_t kLeastSamples = 20;
  const auto longest = std::max_element(
      gpus.begin(), gpus.end(),
      [](const GpuBusy& a, const GpuBusy& b) { return a.idle_ns() < b.idle_ns(); });
  if (longest == gpus.end()) return {};
  const GpuPhases phases =
      FindPhases(*longest, FindGaps(analysis, *longest), analysis.correlation.launches);
  if (!phases.has_warm_up() && !phases.has_tail()) return {};
  CallPaths paths(analysis, {});
  uint64_t all = 0;
  uint64_t own = 0;
  for (const Owned<CpuSample>& sample : analysis.CpuSamples()) {
    if (sample.time_ns < phases.steady_ns || sample.time_ns >= phases.steady_end_ns) continue;
    ++all;
    const PathId path = paths.Of(sample);
    own += path && analysis.frames[paths.tree()[path].frame].name == kProfilerFrame ? 1 : 0;
  }
  if (all < kLeastSamples) return {};
  return Format("; {:.1f} % in the steady state of GPU {}",
                100 * static_cast<double>(own) / static_cast<double>(all), longest->gpu);
}

// The cost of being recorded, as far as samples can see it.
void WriteProfiler(Analysis& analysis, const CallTree& cpu, const std::vector<GpuBusy>& gpus,
                   SummaryText& text) {
  uint64_t samples = 0;
  uint64_t all = 0;
  uint64_t ns = 0;
  for (const CallTree::Node& node : cpu.nodes()) {
    all += node.self_count;
    if (analysis.frames[node.frame].name != kProfilerFrame) continue;
    samples += node.self_count;
    ns = AddSaturated(ns, node.self_ns);
  }
  if (samples == 0) return;
  const double share = 100 * static_cast<double>(samples) / static_cast<double>(all);
  text.Paragraph(
      "overhead",
      Format("{:.1f} % of the CPU samples ({}) are in {}: CUPTI, the injected library and BPF "
             "programs{}",
             share,
             SamplesCountTime(analysis.model, analysis.shown) ? HumanDuration(ns)
                                                              : WithThousands(samples),
             kProfilerFrame, ProfilerInSteadyState(analysis, gpus)));
}

void WriteSlices(const Analysis& analysis, SummaryText& text) {
  const std::vector<AssembledSlice>& slices = analysis.slices.slices;
  if (slices.empty()) return;
  uint64_t bytes = 0;
  for (const AssembledSlice& slice : slices) bytes += slice.size_bytes();
  text.Line("symbols", Format("{} {}, {} before compression", WithThousands(slices.size()),
                              ForCount(slices.size(), "{file|files}"), HumanBytes(bytes)));
}

// Silent about a program that only copies or sets memory.
void WriteLaunchCounts(const Correlation::Counts& counts, uint64_t kernels, SummaryText& text) {
  const bool has_launches =
      counts.launches_seen + counts.launches_failed + counts.launches_captured > 0;
  if (!has_launches && kernels + counts.kernels_without_launch == 0) return;
  std::string line =
      Format("{}: {} with their kernel, {} pending, {} lost", WithThousands(counts.launches_seen),
             WithThousands(counts.launches_matched), WithThousands(counts.launches_pending),
             WithThousands(counts.launches_lost));
  if (counts.launches_failed > 0) {
    AppendFormat(line, ", {} failed", WithThousands(counts.launches_failed));
  }
  if (counts.launches_captured > 0) {
    AppendFormat(line, ", {} captured into graphs", WithThousands(counts.launches_captured));
  }
  text.Paragraph("launches", line);
  text.Line("kernels", Format("{}, {} without a launch", WithThousands(kernels),
                              WithThousands(counts.kernels_without_launch)));
}

// Nodes of replays that were recorded as one: their number is the graphs', not the GPU's.
void WriteHidden(const Analysis& analysis, SummaryText& text) {
  const size_t replays = analysis.model.events.graph_launches.size();
  if (replays == 0) return;
  std::string line = Format("{} {}", WithThousands(replays),
                            ForCount(replays, "{replay|replays} recorded as a whole"));
  const Correlation::Counts& counts = analysis.counts();
  if (counts.hidden_kernels + counts.hidden_copies_and_sets > 0) {
    AppendFormat(line, ", with {} {} and {} {}", WithThousands(counts.hidden_kernels),
                 ForCount(counts.hidden_kernels, "{kernel|kernels}"),
                 WithThousands(counts.hidden_copies_and_sets),
                 ForCount(counts.hidden_copies_and_sets, "{memory operation|memory operations}"));
  }
  line += "; xpu-record --cuda-graph-trace=node shows each kernel";
  text.Paragraph("graphs", line);
}

void WriteProbeLaunches(const Analysis& analysis, SummaryText& text) {
  const Correlation::Counts& counts = analysis.counts();
  const auto& infos = analysis.model.events.recording_info;
  const bool by_probes =
      !infos.empty() && infos.front().launch_stacks == LaunchStackSource::kProbes;
  if (!by_probes && counts.launches_probed + counts.launches_probed_failed == 0) return;
  std::string line = Format("{} recorded by probes", WithThousands(counts.launches_probed));
  if (counts.launches_probed_failed > 0) {
    AppendFormat(line, ", {} failed", WithThousands(counts.launches_probed_failed));
  }
  bool is_matched = true;  // as the last one, which is of a probe
  for (const Launch& launch : analysis.Launches()) {
    is_matched = launch.stack_match != MatchKind::kNone;
  }
  AppendFormat(line, ", {}{}: no GPU times{}", is_matched ? "matched " : "",
               MatchText(is_matched ? MatchKind::kByNesting : MatchKind::kNone),
               by_probes ? " (recorded without injection)" : "");
  text.Paragraph("launches", line);
}

// Silent about what was matched by ids that occur once.
void WriteMatches(const Correlation::Counts& counts, SummaryText& text) {
  std::string line;
  uint64_t others = counts.stacks_by_nesting;
  for (const MatchKind kind : {MatchKind::kById, MatchKind::kByIdAndTime, MatchKind::kByTime}) {
    const uint64_t count = counts.work_by_match[static_cast<size_t>(kind)];
    if (kind != MatchKind::kById) others += count;
    if (count == 0) continue;
    AppendFormat(line, "{}{} {}", line.empty() ? "GPU work " : ", ", WithThousands(count),
                 MatchText(kind));
  }
  if (others == 0) return;
  if (counts.stacks_by_nesting > 0) {
    AppendFormat(
        line, "{}{} {}", line.empty() ? "" : "; ",
        ForCount(counts.stacks_by_nesting, "{stack of 1 call|stacks of " +
                                               WithThousands(counts.stacks_by_nesting) + " calls}"),
        MatchText(MatchKind::kByNesting));
  }
  text.Paragraph("matched", line);
}

void WriteLaunches(const Analysis& analysis, SummaryText& text) {
  const auto launches = analysis.Launches();
  const auto works = analysis.Work();
  const Correlation::Counts& counts = analysis.counts();
  WriteProbeLaunches(analysis, text);
  // Launches seen by probes come last.
  const bool has_ids = !launches.empty() && launches.front().probe == 0;
  if (!has_ids && works.empty()) return;
  const auto kernels = std::count_if(works.begin(), works.end(), [](const GpuWork& work) {
    return work.kind == WorkKind::kKernel;
  });
  WriteLaunchCounts(counts, static_cast<uint64_t>(kernels), text);
  WriteMatches(counts, text);
  WriteHidden(analysis, text);
  size_t pairs = 0;
  uint64_t uncertainty_ns = 0;
  for (const auto& [instance, fit] : analysis.clocks.fits()) {
    pairs += fit.pairs_used();
    uncertainty_ns = std::max(uncertainty_ns, fit.uncertainty_ns());
  }
  std::string clocks =
      Format("{}, +-{}", Counted(pairs, "pair", "pairs"), HumanDuration(uncertainty_ns));
  if (counts.worst_margin_ns) {
    AppendFormat(clocks, ", shortest time from launch to kernel {} ns", *counts.worst_margin_ns);
  }
  text.Line("clocks", clocks);
}

void WriteEntries(std::span<const LedgerEntry> entries, SummaryText& text) {
  for (const LedgerEntry& entry : entries) {
    text.Wrapped("  ", "  ",
                 Format("{} {} ({})", WithThousands(entry.count), entry.what, entry.name));
    for (const std::string& detail : entry.details) text.Wrapped("      ", "      ", detail);
    if (!entry.advice.empty()) text.Wrapped("      ", "      ", "hint: " + entry.advice);
  }
}

constexpr size_t kCaptures = 4;  // the captures of a job look alike
constexpr size_t kProcesses = 5;
constexpr size_t kThreads = 3;  // of each

std::string StartText(uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  struct tm time {};
  if (realtime_ns == 0 || ::gmtime_r(&seconds, &time) == nullptr) return {};
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &time)};
}

std::string TimeText(const MergedCapture& capture) {
  std::string text = StartText(capture.info.start_realtime_ns);
  if (!capture.end) return text + (text.empty() ? "" : ", ") + "end not recorded";
  const uint64_t from_ns = capture.info.start_ns;
  const uint64_t to_ns = std::max(capture.end->time_ns, from_ns);
  text += (text.empty() ? "" : ", ") + HumanDuration(to_ns - from_ns);
  if (capture.end->target_pid != 0) text += ", " + DescribeStatus(capture.end->wait_status);
  return text;
}

void WriteRow(const ThreadTime& row, bool is_time, const std::string& name, SummaryText& text) {
  const std::string cpu = is_time ? HumanDuration(row.cpu) : WithThousands(row.cpu);
  text.Row(Format("  {:>9} {:>9} {:>9}  ", cpu, row.gpu_work == 0 ? "-" : HumanDuration(row.gpu_ns),
                  WithThousands(row.samples)),
           name);
}

struct StackCounts {
  uint64_t all = 0;
  uint64_t complete = 0;
  bool in_process = false;

  void Add(uint8_t stack_flags) {
    ++all;
    complete += (stack_flags & kStackComplete) != 0;
    in_process = in_process || (stack_flags & kStackInProcess) != 0;
  }
};

std::string ShareOfComplete(const StackCounts& counts, std::string_view what) {
  const uint64_t tenths = static_cast<uint64_t>(
      1000.0L * static_cast<long double>(counts.complete) / static_cast<long double>(counts.all));
  std::string share = Format("{}", tenths / 10);
  if (tenths < 1000) AppendFormat(share, ".{}", tenths % 10);
  return Format("{} % of {} {}", share, WithThousands(counts.all), ForCount(counts.all, what));
}

std::unordered_set<uint32_t> ProbesAskedFor(const LoadedEvents& events) {
  std::unordered_set<uint32_t> probes;
  for (const Probe& probe : events.probes) {
    if (probe.purpose == ProbePurpose::kUser) probes.insert(probe.probe);
  }
  return probes;
}

}  // namespace

std::string StackCountsText(const LoadedEvents& events, const EventSet& cpu_samples) {
  if (events.recording_info.empty()) return {};
  const RecordingInfo& info = events.recording_info.front();
  const bool tables = info.call_graph == CallGraph::kTables;
  StackCounts samples;
  StackCounts calls;
  StackCounts hits;  // of probes that the user asked for
  if (tables) {
    const std::unordered_set<uint32_t> asked = ProbesAskedFor(events);
    for (const CpuSample& sample : Selected(events.cpu_samples, cpu_samples)) {
      samples.Add(sample.stack_flags);
    }
    for (const ProbeHit& hit : events.probe_hits) {
      if (asked.contains(hit.probe)) {
        hits.Add(hit.stack_flags);
      } else if (!hit.is_return) {
        calls.Add(hit.stack_flags);
      }
    }
  }
  if (tables || info.launch_stacks == LaunchStackSource::kInProcess) {
    for (const LaunchStack& launch : events.launch_stacks) calls.Add(launch.stack_flags);
  }
  std::string text;
  const auto add = [&](const StackCounts& counts, std::string_view what) {
    if (counts.all > 0) text += (text.empty() ? "" : " and ") + ShareOfComplete(counts, what);
  };
  add(samples, "CPU {sample|samples}");
  add(calls, "CUDA {call|calls}");
  add(hits, "probe {hit|hits}");
  if (text.empty()) return text;
  text += ForCount(samples.all + calls.all + hits.all,
                   " {reaches its|reach their} outermost frame (by unwind tables");
  if (calls.in_process) text += "; CUDA calls: inside the process";
  return text + ")";
}

void WriteQuality(Analysis& analysis, const CallTree& cpu, const std::vector<GpuBusy>& gpus,
                  SummaryText& text) {
  text.Heading("Recording");
  WriteSamples(analysis, text);
  WriteProfiler(analysis, cpu, gpus, text);
  WriteSlices(analysis, text);
  WriteLaunches(analysis, text);
}

void WriteLedger(const Analysis& analysis, SummaryText& text) {
  std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  std::erase_if(ledger, IsAboutSymbols);  // they are in a table of their own
  const auto notes = std::stable_partition(ledger.begin(), ledger.end(), LosesData);
  if (notes != ledger.begin()) {
    text.Heading("Losses");
    WriteEntries({ledger.begin(), notes}, text);
  }
  if (notes != ledger.end()) {
    text.Heading("Notes");
    WriteEntries({notes, ledger.end()}, text);
  }
}

void WriteUnsymbolized(const Analysis& analysis, const UnsymbolizedFiles& unsymbolized,
                       SummaryText& text) {
  std::vector<LedgerEntry> causes = BuildLedger(analysis);
  std::erase_if(causes, [](const LedgerEntry& entry) { return !IsAboutSymbols(entry); });
  if (unsymbolized.generated > 0) {
    text.Heading("Code without a file");
    text.Wrapped("  ", "  ",
                 Format("{} CPU {} in code that was generated at run time and has no names. {}",
                        WithThousands(unsymbolized.generated),
                        ForCount(unsymbolized.generated, "{sample ends|samples end}"),
                        unsymbolized.generated_hint));
  }
  if (causes.empty() && unsymbolized.files.empty()) return;
  if (unsymbolized.files.empty()) {
    text.Heading("Symbols");
  } else {
    const size_t samples = analysis.CpuSamples().size();
    text.Heading(
        "Names missing on this machine",
        unsymbolized.samples == 0
            ? ""
            : Format(": innermost frames of {} of {} {}", WithThousands(unsymbolized.samples),
                     WithThousands(samples), ForCount(samples, "{sample|samples}")));
    text.Names("   samples  GPU work  file");
  }
  const std::string indent(22, ' ');
  const size_t rows = std::min(unsymbolized.files.size(), kUnsymbolizedRows);
  for (size_t i = 0; i < rows; ++i) {
    const UnsymbolizedFile& file = unsymbolized.files[i];
    text.Row(Format("{:>10} {:>9}  ", WithThousands(file.samples), WithThousands(file.gpu_work)),
             file.path);
    // Files that have no names for the same reason share it.
    if (i + 1 < rows && unsymbolized.files[i + 1].reason == file.reason) continue;
    text.Wrapped(indent, indent, file.reason);
  }
  if (unsymbolized.files.size() > rows) {
    text.Wrapped("  ", "  ", Format("... {} more", unsymbolized.files.size() - rows));
  }
  for (LedgerEntry& cause : causes) cause.details.clear();  // the rows say it
  WriteEntries(causes, text);
}

std::string DescribeStatus(int status) {
  if (WIFEXITED(status)) return Format("exit status {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name == nullptr ? Format("killed by signal {}", WTERMSIG(status))
                           : Format("killed by SIG{}", name);
  }
  return Format("wait status {:#x}", status);
}

std::string HostText(const Model& model, const RecordingInfo& info) {
  return Format("{} {} {}, {} CPUs", model.Text(info.host_name), model.Text(info.kernel_release),
                model.Text(info.machine), info.cpu_count);
}

void WriteLabels(const Model& model, const RecordingInfo& info, std::string_view title,
                 SummaryText& text) {
  std::string all;
  for (const auto& [key, value] : LabelsOf(model.Text(info.settings))) {
    AppendFormat(all, "{}{}={}", all.empty() ? "" : ", ", key, value);
  }
  if (!all.empty()) text.Line(title, all);
}

void WriteCaptures(const Analysis& analysis, SummaryText& text) {
  const Model& model = analysis.model;
  size_t shown = 0;
  for (const MergedCapture& capture : model.captures) {
    if (shown++ == kCaptures) {
      return text.Line("captures", Format("... {} in all", model.captures.size()));
    }
    const RecordingInfo& info = capture.info;
    text.Paragraph("capture", capture.path);
    text.Line("  command", model.Text(info.command_line));
    text.Line("  host", HostText(model, info));
    WriteLabels(model, info, "  labels", text);
    text.Line("  time", TimeText(capture));
  }
}

void WriteProcessTimes(const Analysis& analysis, SummaryText& text) {
  const std::vector<ThreadTime> threads = ThreadTimes(analysis);
  const std::vector<ThreadTime> processes = ProcessTimes(threads);
  if (processes.size() < 2) return;
  const bool is_time = SamplesCountTime(analysis.model, analysis.shown);
  text.Heading("Processes", ", busiest first, with their busiest threads");
  text.Names(Format("  {:>9}  GPU time   samples  process",
                    is_time ? "CPU time" : ToWidth(SampleUnit(analysis.model, analysis.shown), 9)));
  auto thread = threads.begin();
  for (size_t i = 0; i < std::min(processes.size(), kProcesses); ++i) {
    const ThreadTime& process = processes[i];
    std::string name = analysis.job.has_ranks()
                           ? Format("{}, {}", process.process_name,
                                    analysis.job.TitleOf(process.owner.process, process.owner.pid))
                           : Format("{} ({})", process.process_name, HostId(process.owner.pid));
    if (const auto* container = analysis.containers.Of(process.owner.process, UINT64_MAX)) {
      AppendFormat(name, " in {}", analysis.containers.NameOf(*container));
    }
    WriteRow(process, is_time, name, text);
    const auto first = thread;
    const auto is_of_process = [&](const ThreadTime& row) {
      return row.owner.process == process.owner.process && row.owner.pid == process.owner.pid;
    };
    while (thread != threads.end() && is_of_process(*thread)) ++thread;
    const auto count = static_cast<size_t>(thread - first);
    for (size_t k = 0; count > 1 && k < std::min(count, kThreads); ++k) {
      const ThreadTime& row = first[static_cast<ptrdiff_t>(k)];
      WriteRow(row, is_time, Format("  {} ({})", row.thread_name, HostId(row.owner.tid)), text);
    }
  }
  if (processes.size() > kProcesses || threads.size() > processes.size()) {
    text.Names("  all processes and threads: --table thread_sum");
  }
}

}  // namespace xpu
