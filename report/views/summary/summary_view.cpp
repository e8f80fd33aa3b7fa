#include <algorithm>
#include <map>

#include "format/base/counted.h"
#include "format/base/quote.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_memory.h"
#include "report/query/ledger.h"
#include "report/query/statistics.h"
#include "report/trace/user_probes.h"
#include "report/views/summary/summary_hints.h"
#include "report/views/summary/summary_sections.h"
#include "report/views/summary/summary_text.h"
#include "report/views/view.h"

namespace xpu {
namespace {

class Summary {
 public:
  Summary(Analysis& analysis, const ViewOptions& options, Output& output)
      : analysis_(analysis),
        model_(analysis.model),
        options_(options),
        kernel_names_(options.tree.kernel_names),
        text_(output) {}

  void Write() {
    // The trees come first: what the symbolizer finds on the way belongs into the ledger.
    const CallTree cpu =
        BuildCallTree(analysis_, {.mode = TreeMode::kCpu, .kernel_names = kernel_names_});
    const CallTree gpu =
        BuildCallTree(analysis_, {.mode = TreeMode::kGpu, .kernel_names = kernel_names_});
    const std::vector<GpuBusy> busy = FindGpuBusy(analysis_);
    WriteProgram();
    WriteLosses();
    WriteDeadlocks(analysis_, text_);
    WriteRankSums(analysis_, busy, options_.steps.definition, text_);
    WriteGpus(busy);
    WriteGpuMetrics(analysis_, text_);
    WriteMemory();
    std::vector<StepSeries> steps;
    if (analysis_.shown.filter_text.empty())
      steps = FindSteps(analysis_, options_.steps.definition);
    if (WriteSteps(analysis_, options_.steps.definition, steps, text_)) {
      text_.Command(CommandOf(
          {.what = {},
           .next = "--slow-steps --flamegraph -o slow.html" + StepOption(options_.filter)}));
    }
    WriteHints(busy, steps);
    WriteProcessTimes(analysis_, text_);
    WriteOffCpu(analysis_, text_);
    WriteTables();
    WriteFunctions(cpu);
    WriteProbes();
    WriteQuality(analysis_, cpu, busy, text_);
    WriteLedger(analysis_, text_);
    WriteUnsymbolized(analysis_, FindUnsymbolizedFiles(analysis_, cpu, gpu), text_);
  }

 private:
  void WriteProgram();
  void WriteProcesses();
  void WriteLosses();
  std::string WhyNoGpuWork() const;
  void WriteNoGpu();
  void WriteGpus(const std::vector<GpuBusy>& busy);
  void WriteDeviceNumbers();
  void WriteMemory();
  void WriteAllocators();
  void WriteHints(const std::vector<GpuBusy>& busy, const std::vector<StepSeries>& steps);
  std::string CommandOf(const Hint& hint) const;
  void WriteTables();
  std::string TotalText(uint64_t ns) const;
  void WriteTimes(std::string_view title, std::string_view table,
                  const std::vector<Statistics>& rows, FitNames fit = FitTexts);
  void WriteFunctions(const CallTree& tree);
  void WriteProbes();
  void WriteMore(size_t rows, std::string_view table);

  Analysis& analysis_;
  const Model& model_;
  const ViewOptions& options_;
  const KernelNames kernel_names_;
  SummaryText text_;
};

void Summary::WriteProgram() {
  if (!model_.captures.empty()) {
    WriteCaptures(analysis_, text_);
  } else {
    text_.Paragraph("capture", model_.path);
  }
  if (const std::string parts = PartsText(model_); !parts.empty()) text_.Paragraph("parts", parts);
  if (model_.events.recording_info.empty()) return text_.Line("command", "[lost]");
  for (const RecordingInfo& info : model_.events.recording_info) {
    if (!model_.captures.empty()) break;
    text_.Line("command", model_.Text(info.command_line));
    if (IsImported(model_, info)) continue;
    text_.Line("host", HostText(model_, info));
    WriteLabels(model_, info, "labels", text_);
  }
  if (!model_.events.recording_end.empty()) {
    std::string duration = HumanDuration(RunTimeNs(model_));
    // Which recording a status belongs to is not known once there are several.
    const auto& infos = model_.events.recording_info;
    const auto& end = model_.events.recording_end.back();
    if (infos.size() == 1 && !IsImported(model_, infos.front()) && end.target_pid != 0) {
      duration += ", " + DescribeStatus(end.wait_status);
    }
    text_.Line("duration", duration);
    const std::string recorded = RecordedText(model_);
    if (!recorded.empty()) text_.Paragraph("recorded", recorded);
  } else if (analysis_.recorded_until_ns > 0 && model_.events.recording_info.size() == 1) {
    text_.Line("duration",
               HumanDuration(analysis_.recorded_until_ns) + " until the capture is cut off");
  }
  WriteProcesses();
  WriteJob(analysis_, text_);
  if (analysis_.shown.filter_text.empty()) return;
  text_.Line("filters",
             analysis_.shown.filter_text + (analysis_.ShowsNothing() ? " (nothing matches)" : ""));
}

void Summary::WriteProcesses() {
  std::map<std::string, size_t> names;
  for (uint32_t i = 1; i <= analysis_.processes.size(); ++i) {
    ++names[std::string(analysis_.processes.Name(ProcessId{i}))];
  }
  std::string processes = WithThousands(analysis_.processes.size());
  std::string_view separator = ": ";
  for (const auto& [name, count] : names) {
    if (name.empty()) continue;
    processes += separator;
    processes += count > 1 ? Format("{} x{}", name, count) : name;
    separator = ", ";
  }
  text_.Line("processes", processes);
  WriteContainers(analysis_, text_);
}

// One line here, so that nobody takes the numbers below for more than they are; the list is last.
void Summary::WriteLosses() {
  size_t lost = 0;
  size_t partial = 0;
  size_t others = 0;
  for (const LedgerEntry& entry : BuildLedger(analysis_)) {
    if (IsAboutSymbols(entry)) continue;
    if (!LosesData(entry)) {
      ++others;
    } else {
      ++(entry.severity == Severity::kLost ? lost : partial);
    }
  }
  if (lost + partial == 0) {
    const std::string rest = others == 0 ? "" : " (see the notes at the end)";
    return text_.Line("losses", "none" + rest, SummaryText::Tone::kGood);
  }
  const auto reasons = [](size_t count) { return Counted(count, "reason", "reasons"); };
  std::string what;
  if (lost > 0) what = "events lost for " + reasons(lost);
  if (partial > 0) {
    what += lost > 0 ? Format(", incomplete for {}", WithThousands(partial))
                     : "events incomplete for " + reasons(partial);
  }
  what += ": see Losses at the end";
  text_.Line("losses", what, lost > 0 ? SummaryText::Tone::kBad : SummaryText::Tone::kWarning);
}

void Summary::WriteMemory() {
  WriteAllocators();
  const GpuMemory memory = FollowMemory(analysis_);
  if (memory.uses.empty()) return;
  text_.Heading("GPU memory", ": peak use, and what was never freed");
  text_.Names("       peak    allocations      not freed  GPU");
  for (const GpuMemoryUse& use : memory.uses) {
    text_.Row(Format("  {:>9}  {:>13}  {:>13}  ", HumanBytes(use.peak_bytes),
                     WithThousands(use.count), HumanBytes(use.left_bytes)),
              std::to_string(use.gpu));
  }
  text_.Names("  by allocating stack: --top --table gpu_mem_alloc_sum");
}

void Summary::WriteAllocators() {
  const AllocatorMemory memory(analysis_);
  if (memory.empty()) return;
  text_.Heading("Memory of PyTorch's allocator", ": peak, and what was left at the end");
  text_.Names("  allocated   reserved      blocks       left  GPU, process");
  for (const AllocatorUse& use : memory.uses()) {
    const std::string reserved =
        use.reserved_peak_bytes == 0 ? "-" : HumanBytes(use.reserved_peak_bytes);
    text_.Row(Format("  {:>9}  {:>9}  {:>10}  {:>9}  ", HumanBytes(use.peak_bytes), reserved,
                     WithThousands(use.count), HumanBytes(use.left_bytes)),
              Format("{}, {}", use.gpu, use.pid));
  }
  text_.Names("  by allocating stack: --flamegraph --mode memory -o peak.html");
}

// Why there is no GPU work. What the ledger counts may be all that there was.
std::string Summary::WhyNoGpuWork() const {
  bool is_missing = false;
  bool is_unknown = false;
  for (const LedgerEntry& entry : BuildLedger(analysis_)) {
    const LossInfo* info = FindLoss(entry.name);
    if (info == nullptr) continue;
    is_missing = is_missing || info->kind == LossKind::kProcessNotReached ||
                 info->kind == LossKind::kInjectDormant;
    is_unknown = is_unknown || info->kind == LossKind::kInjectionUnknown;
  }
  if (is_missing) return "CUDA processes may not have been recorded, see Losses";
  if (!model_.events.gpu_processes.empty()) return "CUDA was initialized, but no work was started";
  return is_unknown ? "whether a process used CUDA is not known, see Notes"
                    : "no recorded process initialized CUDA";
}

// Where the GPU was to be recorded and there is nothing of it.
void Summary::WriteNoGpu() {
  const LoadedEvents& events = model_.events;
  const bool by_library = std::any_of(
      events.recording_info.begin(), events.recording_info.end(), [](const RecordingInfo& info) {
        return info.launch_stacks == LaunchStackSource::kInProcess ||
               info.launch_stacks == LaunchStackSource::kMarker;
      });
  if (!by_library || !analysis_.shown.filter_text.empty() || !analysis_.Launches().empty()) return;
  text_.Line("GPU work", "none: " + WhyNoGpuWork());
}

void Summary::WriteGpus(const std::vector<GpuBusy>& busy) {
  std::map<uint32_t, std::string> names;
  for (const GpuDevices::Gpu& gpu : analysis_.gpus.all()) {
    const Device& device = *gpu.device;
    std::string& name = names[gpu.number] = model_.Text(device.name);
    if (device.multiprocessor_count == 0) continue;  // imported: the text has no more
    AppendFormat(name, ", {} SMs, {}", device.multiprocessor_count,
                 HumanBytes(device.global_memory_bytes));
  }
  for (const GpuBusy& gpu : busy) names.try_emplace(gpu.gpu, "[unnamed]");
  if (names.empty()) return WriteNoGpu();
  text_.Heading("GPUs", ", between their first and last work");
  text_.Names("  busy%      busy      idle  overlap  GPU");
  for (const auto& [number, name] : names) {
    const auto of =
        std::lower_bound(busy.begin(), busy.end(), number,
                         [](const GpuBusy& gpu, uint32_t wanted) { return gpu.gpu < wanted; });
    std::string numbers = Format("  {:>5} {:>9} {:>9} {:>8}  ", "-", "-", "-", "-");
    if (of != busy.end() && of->gpu == number) {
      const std::string overlap =
          of->busy_ns == 0 ? "-" : Format("{:.2f}x", PercentOf(of->sum_ns, of->busy_ns) / 100);
      numbers = Format("  {:>5.1f} {:>9} {:>9} {:>8}  ", PercentOf(of->busy_ns, of->active_ns()),
                       HumanDuration(of->busy_ns), HumanDuration(of->idle_ns()), overlap);
    }
    text_.Row(numbers, Format("{} {}", number, name));
  }
  WriteDeviceNumbers();
}

// Processes number their GPUs each in their own way.
void Summary::WriteDeviceNumbers() {
  for (const auto& [device, gpu] : analysis_.gpus.by_device()) {
    const auto& [instance, device_id] = device;
    if (gpu.number == device_id) continue;
    const uint32_t pid = analysis_.correlation.PidOf(instance);
    text_.Row(std::string(39, ' '),
              Format("GPU {} is device {} of {}", gpu.number, device_id,
                     analysis_.job.TitleOf(analysis_.processes.At(pid, UINT64_MAX), pid)));
  }
}

// The filters and captures that were given, so that a command of the summary is about the same.
// What is read from a pipe is gone by then: a name stands for what it came from.
std::string Summary::CommandOf(const Hint& hint) const {
  FilterOptions filter = options_.filter;
  if (!hint.time.empty()) filter.time_text.clear();
  if (hint.next.find("--mode cpu") != std::string::npos) filter.ForgetGpuWork();
  std::string command = Format("xpu-report {}", hint.next);
  if (!hint.time.empty()) AppendFormat(command, " --time {}", hint.time);
  if (const std::string text = filter.Text(); !text.empty()) AppendFormat(command, " {}", text);
  const std::vector<std::string>& captures = options_.captures;
  if (captures.size() == 1 && captures.front() == "capture.xpu") return command;
  for (const std::string& capture : captures) {
    if (capture == "-") {
      command += " CAPTURE";
    } else {
      AppendFormat(command, " {}",
                   QuoteForShell(capture.starts_with('-') ? "./" + capture : capture));
    }
  }
  return command;
}

void Summary::WriteHints(const std::vector<GpuBusy>& busy, const std::vector<StepSeries>& steps) {
  const std::vector<Hint> hints = FindHints(analysis_, busy, steps, options_.filter);
  if (hints.empty()) return;
  text_.Heading("What to look at next");
  for (const Hint& hint : hints) {
    text_.Wrapped("- ", "  ", hint.what);
    if (hint.next.empty()) continue;
    text_.Command(CommandOf(hint));
  }
}

void Summary::WriteTables() {
  const GpuNames names(analysis_, kernel_names_);
  WriteTimes("GPU kernels", "cuda_gpu_kern_sum", KernelTimes(analysis_, names), FitKernels);
  WriteTimes("CUDA graph replays", "cuda_gpu_graph_sum", GraphTimes(analysis_, names));
  WriteTimes("GPU memory operations", "cuda_gpu_mem_time_sum", CopyTimes(analysis_));
  WriteTimes("CUDA API calls", "cuda_api_sum", ApiTimes(analysis_));
}

void Summary::WriteMore(size_t rows, std::string_view table) {
  if (rows <= kSummaryRows) return;
  text_.Names(Format("  ... {} more: --top --table {}", WithThousands(rows - kSummaryRows), table));
}

// A total of windows has an estimate for all the time.
std::string Summary::TotalText(uint64_t ns) const {
  const double scale = WindowScale(model_);
  if (scale == 0) return HumanDuration(ns);
  return Format("{}, about {} overall", HumanDuration(ns),
                HumanDuration(ToSaturated(static_cast<double>(ns) * scale)));
}

void Summary::WriteTimes(std::string_view title, std::string_view table,
                         const std::vector<Statistics>& rows, FitNames fit) {
  if (rows.empty()) return;
  constexpr size_t kNumbers = 39;
  const uint64_t whole = SumOfTotals(rows);
  text_.Heading(title, ": " + TotalText(whole));
  text_.Names("  time%     total     count       avg  name");
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(rows.size(), kSummaryRows); ++i) shown.push_back(rows[i].name);
  const FittingNames names = fit(shown, SummaryText::kWidth - kNumbers);
  for (size_t i = 0; i < names.size(); ++i) {
    const Statistics& row = rows[i];
    text_.Row(Format("  {:>5.1f} {:>9} {:>9} {:>9}  ", PercentOf(row.total, whole),
                     HumanDuration(row.total), WithThousands(row.count),
                     HumanDuration(row.total / row.count)),
              names[i].first);
    if (!names[i].second.empty()) text_.Row("        ", names[i].second);
  }
  WriteMore(rows.size(), table);
}

void Summary::WriteFunctions(const CallTree& tree) {
  const std::vector<FunctionTime> rows = FunctionTimes(tree, analysis_.frames);
  if (rows.empty()) return;
  uint64_t whole = 0;
  for (const FunctionTime& row : rows) whole = AddSaturated(whole, row.self_ns);
  const bool is_time = SamplesCountTime(model_, analysis_.shown);
  std::string of = is_time ? TotalText(whole) : SampleUnitName(model_, analysis_.shown);
  // Samples at a frequency have the right shares, but not the right sum.
  const bool has_sum = !is_time && analysis_.SampleSources().front().frequency_hz == 0;
  if (has_sum) of = Format("{} {}", WithThousands(whole), of);
  text_.Heading("CPU functions", ": " + of);
  text_.Names("  self%  total%   samples  function");
  for (size_t i = 0; i < std::min(rows.size(), kSummaryRows); ++i) {
    const FunctionTime& row = rows[i];
    const std::string numbers =
        Format("  {:>5.1f}  {:>6.1f} {:>9}  ", PercentOf(row.self_ns, whole),
               PercentOf(row.total_ns, whole), WithThousands(row.self_count));
    text_.Row(numbers, analysis_.frames[row.frame].Label());
  }
  WriteMore(rows.size(), "cpu_func_sum");
}

void Summary::WriteProbes() {
  const std::vector<ProbeTimes> rows = FindProbeTimes(model_, analysis_.shown);
  if (rows.empty()) return;
  uint64_t hits = 0;
  for (const ProbeTimes& row : rows) hits += row.hits;
  text_.Heading("Probes", Format(": {} {}", WithThousands(hits), ForCount(hits, "{hit|hits}")));
  text_.Names("   hits%      hits       avg  probe");
  for (size_t i = 0; i < std::min(rows.size(), kSummaryRows); ++i) {
    const ProbeTimes& row = rows[i];
    const std::string average = row.calls == 0 ? "-" : HumanDuration(row.total_ns / row.calls);
    text_.Row(Format("  {:>6.1f} {:>9} {:>9}  ", PercentOf(row.hits, hits), WithThousands(row.hits),
                     average),
              row.name);
  }
  WriteMore(rows.size(), "probe_sum");
}

}  // namespace

void WriteSummary(Analysis& analysis, const ViewOptions& options, Output& output) {
  Summary(analysis, options, output).Write();
}

View SummaryView() {
  return {
      .has_ledger = true,
      .write =
          [](const ViewInput& input) { WriteSummary(input.analysis, input.options, input.output); },
  };
}

}  // namespace xpu
