#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/wait.h>

#include "format/base/text.h"
#include "report/ledger.h"
#include "report/nameless_files.h"
#include "report/stack_counts.h"
#include "report/statistics.h"
#include "report/text.h"
#include "report/views.h"

namespace xpu {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kRows = 5;
constexpr size_t kNamelessRows = 10;

class Summary {
 public:
  Summary(Analysis& analysis, KernelNames kernel_names, Output& output)
      : analysis_(analysis), model_(analysis.model), kernel_names_(kernel_names), output_(output) {}

  void Write() {
    // The tree comes first: what the symbolizer finds on the way belongs into the ledger.
    const CallTree cpu =
        BuildCallTree(analysis_, {.mode = MergeMode::kCpu, .kernel_names = kernel_names_});
    const CallTree gpu =
        BuildCallTree(analysis_, {.mode = MergeMode::kGpu, .kernel_names = kernel_names_});
    WriteRecording();
    WriteCounts();
    WriteLedger();
    const GpuNames names(analysis_, kernel_names_);
    std::vector<Statistics> kernels = KernelTimes(analysis_, names);
    for (Statistics& row : kernels) row.name = ShortKernelName(std::string(row.name));
    WriteTimes("GPU kernels", kernels);
    WriteTimes("CUDA graph replays", GraphTimes(analysis_, names));
    WriteTimes("GPU copies and sets", CopyTimes(analysis_));
    WriteTimes("CUDA API calls", ApiTimes(analysis_));
    WriteTimes("CUDA overheads", OverheadTimes(analysis_));
    WriteFunctions(cpu);
    WriteNameless(FindNamelessFiles(analysis_, cpu, gpu));
  }

 private:
  void Line(std::string_view label, std::string_view text);
  void WriteRecording();
  void WriteEnd();
  void WriteCounts();
  void WriteSlices();
  void WriteDevices();
  void WriteLaunches();
  void WriteLedger();
  void WriteEntries(std::string_view title, std::span<const LedgerEntry> entries);
  void WriteWrapped(std::string_view first, std::string_view indent, std::string_view text);
  void WriteLaunchCounts(const Correlation::Counts& counts);
  void WriteHidden();
  void WriteTimes(std::string_view title, const std::vector<Statistics>& rows);
  void WriteFunctions(const CallTree& tree);
  void WriteNameless(const NamelessFiles& nameless);

  Analysis& analysis_;
  const Model& model_;
  KernelNames kernel_names_;
  Output& output_;
};

void Summary::Line(std::string_view label, std::string_view text) {
  output_.Write(ToWidth(Format("{:<10}{}", label, text), kWidth) + "\n");
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

void Summary::WriteRecording() {
  Line("capture", model_.path);
  if (model_.events.recording_info.empty()) return Line("command", "[lost]");
  const RecordingInfo& info = model_.events.recording_info.front();
  Line("command", model_.Text(info.command_line));
  Line("host", Format("{} {} {}, {} CPUs", model_.Text(info.host_name),
                      model_.Text(info.kernel_release), model_.Text(info.machine), info.cpu_count));
  if (!model_.events.recording_end.empty()) {
    const RecordingEnd& end = model_.events.recording_end.back();
    const uint64_t lasted = end.time_ns - std::min(end.time_ns, info.start_ns);
    Line("duration", Format("{}, {}", HumanDuration(lasted), DescribeStatus(end.wait_status)));
  }
}

void Summary::WriteCounts() {
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
  Line("processes", processes);
  const auto& sources = model_.events.sample_sources;
  std::string samples = WithThousands(model_.events.cpu_samples.size());
  if (!sources.empty()) {
    AppendFormat(samples, " ({}, {} Hz)", model_.Text(sources.front().name),
                 sources.front().frequency_hz);
  }
  Line("samples", samples);
  const std::string stacks = StackCountsText(model_.events);
  if (!stacks.empty()) WriteWrapped("stacks    ", "          ", stacks);
  WriteSlices();
  WriteDevices();
  WriteLaunches();
}

void Summary::WriteSlices() {
  const std::vector<AssembledSlice>& slices = analysis_.slices.slices;
  if (slices.empty()) return;
  uint64_t bytes = 0;
  for (const AssembledSlice& slice : slices) bytes += slice.size_bytes();
  Line("symbols", Format("of {} files in the capture, {} before compression",
                         WithThousands(slices.size()), HumanBytes(bytes)));
}

void Summary::WriteDevices() {
  std::map<uint32_t, std::string> devices;
  for (const GpuDevices::Gpu& gpu : analysis_.gpus.all()) {
    devices[gpu.number] =
        Format("{} {}, {} SMs, {}", gpu.number, model_.Text(gpu.device->name),
               gpu.device->multiprocessor_count, HumanBytes(gpu.device->global_memory_bytes));
  }
  for (const GpuWork& work : analysis_.correlation.work) {
    if (work.kind == WorkKind::kSynchronization) continue;
    const uint32_t number = analysis_.gpus.Of(work.instance, work.device_id).number;
    devices.try_emplace(number, Format("{} [unnamed]", number));
  }
  for (const auto& [number, text] : devices) Line("GPU", text);
  // Processes number their GPUs each in their own way.
  for (const auto& [device, gpu] : analysis_.gpus.by_device()) {
    const auto& [instance, device_id] = device;
    if (gpu.number == device_id) continue;
    const auto process = analysis_.correlation.processes.find(instance);
    const uint32_t pid = process == analysis_.correlation.processes.end() ? 0 : process->second.pid;
    Line("", Format("GPU {} is device {} of process {}", gpu.number, device_id, pid));
  }
}

void Summary::WriteLaunchCounts(const Correlation::Counts& counts) {
  std::string text =
      Format("{}: {} with their kernel, {} pending, {} lost", WithThousands(counts.launches_seen),
             WithThousands(counts.launches_matched), WithThousands(counts.launches_pending),
             WithThousands(counts.launches_lost));
  if (counts.launches_failed > 0) {
    AppendFormat(text, ", {} failed", WithThousands(counts.launches_failed));
  }
  if (counts.launches_captured > 0) {
    AppendFormat(text, ", {} captured into graphs", WithThousands(counts.launches_captured));
  }
  WriteWrapped("launches  ", "          ", text);
}

// Nodes of replays that were recorded as one: their number is the graphs', not the GPU's.
void Summary::WriteHidden() {
  const size_t replays = model_.events.graph_launches.size();
  if (replays == 0) return;
  std::string text = Format("{} replays recorded as one each", WithThousands(replays));
  const Correlation::Counts& counts = analysis_.correlation.counts;
  if (counts.hidden_kernels + counts.hidden_copies_and_sets > 0) {
    AppendFormat(text, ", {} kernels, {} copies and sets hidden in them",
                 WithThousands(counts.hidden_kernels),
                 WithThousands(counts.hidden_copies_and_sets));
  }
  text += "; xpu-record --cuda-graph-trace=node shows each kernel";
  WriteWrapped("graphs    ", "          ", text);
}

void Summary::WriteLaunches() {
  const Correlation& correlation = analysis_.correlation;
  const Correlation::Counts& counts = correlation.counts;
  const auto& infos = model_.events.recording_info;
  const bool by_probes =
      !infos.empty() && infos.front().launch_stacks == LaunchStackSource::kProbes;
  if (by_probes || counts.launches_probed + counts.launches_probed_failed > 0) {
    std::string text = Format("{} seen by probes", WithThousands(counts.launches_probed));
    if (counts.launches_probed_failed > 0) {
      AppendFormat(text, ", {} failed", WithThousands(counts.launches_probed_failed));
    }
    AppendFormat(text, ", matched {}: no GPU times{}", MatchText(MatchKind::kByNesting),
                 by_probes ? " (recorded without injection)" : "");
    WriteWrapped("launches  ", "          ", text);
  }
  // Those of probes come last.
  const bool has_ids = !correlation.launches.empty() && correlation.launches.front().probe == 0;
  if (!has_ids && correlation.work.empty()) return;
  WriteLaunchCounts(counts);
  Line("kernels", Format("{}, {} without their launch", WithThousands(model_.events.kernels.size()),
                         WithThousands(counts.kernels_without_launch)));
  WriteHidden();
  size_t pairs = 0;
  uint64_t uncertainty_ns = 0;
  for (const auto& [instance, fit] : analysis_.clocks.fits()) {
    pairs += fit.pairs_used();
    uncertainty_ns = std::max(uncertainty_ns, fit.uncertainty_ns());
  }
  std::string clocks = Format("{} pairs, +-{}", pairs, HumanDuration(uncertainty_ns));
  if (correlation.worst_margin_ns) {
    AppendFormat(clocks, ", least time from launch to kernel {} ns", *correlation.worst_margin_ns);
  }
  Line("clocks", clocks);
}

// Words wrapped to the width; the first line begins with `first`, which is as long as the `indent`
// of the others.
void Summary::WriteWrapped(std::string_view first, std::string_view indent, std::string_view text) {
  const std::string valid = ToValidUtf8(text);
  std::string line(first);
  size_t at = 0;
  while (at < valid.size()) {
    const size_t end = std::min(valid.find(' ', at), valid.size());
    const std::string word =
        ToWidth(std::string_view(valid).substr(at, end - at), kWidth - indent.size());
    if (line.size() > indent.size() && WidthOf(line) + 1 + WidthOf(word) > kWidth) {
      output_.Write(line + "\n");
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    at = end + 1;
  }
  output_.Write(line + "\n");
}

void Summary::WriteLedger() {
  std::vector<LedgerEntry> ledger = BuildLedger(analysis_);
  std::erase_if(ledger, IsAboutSymbols);  // they are in a table of their own
  const auto notes = std::stable_partition(
      ledger.begin(), ledger.end(), [](const auto& e) { return e.severity != Severity::kNote; });
  if (notes == ledger.begin()) Line("losses", "none");
  WriteEntries("Losses", {ledger.begin(), notes});
  WriteEntries("Notes", {notes, ledger.end()});
}

void Summary::WriteEntries(std::string_view title, std::span<const LedgerEntry> entries) {
  if (entries.empty()) return;
  if (!title.empty()) output_.Write(Format("\n{}\n", title));
  for (const LedgerEntry& entry : entries) {
    WriteWrapped("  ", "  ",
                 Format("{} {} ({})", WithThousands(entry.count), entry.what, entry.name));
    for (const std::string& detail : entry.details) WriteWrapped("      ", "      ", detail);
    if (!entry.advice.empty()) WriteWrapped("      ", "      ", "hint: " + entry.advice);
  }
}

void Summary::WriteTimes(std::string_view title, const std::vector<Statistics>& rows) {
  if (rows.empty()) return;
  uint64_t whole = 0;
  for (const Statistics& row : rows) whole = AddSaturated(whole, row.total);
  output_.Write(Format("\n{}: {}\n", title, HumanDuration(whole)));
  output_.Write("  time%     total     count       avg  name\n");
  for (size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
    const Statistics& row = rows[i];
    const double share =
        whole == 0 ? 0 : 100.0 * static_cast<double>(row.total) / static_cast<double>(whole);
    const std::string numbers =
        Format("  {:>5.1f} {:>9} {:>9} {:>9}  ", share, HumanDuration(row.total),
               WithThousands(row.count), HumanDuration(static_cast<uint64_t>(row.average)));
    output_.Write(numbers + ToWidth(row.name, kWidth - std::min(numbers.size(), kWidth)) + "\n");
  }
  if (rows.size() > kRows) output_.Write(Format("  ... {} more: --top\n", rows.size() - kRows));
}

void Summary::WriteFunctions(const CallTree& tree) {
  const std::vector<FunctionTime> rows = FunctionTimes(tree, analysis_.frames);
  if (rows.empty()) return;
  uint64_t whole = 0;
  for (const FunctionTime& row : rows) whole = AddSaturated(whole, row.self_ns);
  output_.Write(Format("\nCPU functions: {}\n", HumanDuration(whole)));
  output_.Write("  self%  total%   samples  function\n");
  const double scale = whole == 0 ? 0 : 100.0 / static_cast<double>(whole);
  for (size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
    const FunctionTime& row = rows[i];
    const std::string name = analysis_.frames[row.frame].Label();
    const std::string numbers =
        Format("  {:>5.1f}  {:>6.1f} {:>9}  ", static_cast<double>(row.self_ns) * scale,
               static_cast<double>(row.total_ns) * scale, WithThousands(row.self_count));
    output_.Write(numbers + ToWidth(name, kWidth - std::min(numbers.size(), kWidth)) + "\n");
  }
  if (rows.size() > kRows) output_.Write(Format("  ... {} more: --top\n", rows.size() - kRows));
}

void Summary::WriteNameless(const NamelessFiles& nameless) {
  std::vector<LedgerEntry> causes = BuildLedger(analysis_);
  std::erase_if(causes, [](const LedgerEntry& entry) { return !IsAboutSymbols(entry); });
  if (causes.empty() && nameless.files.empty()) return;
  if (nameless.files.empty()) {
    output_.Write("\nSymbols\n");
  } else {
    output_.Write(Format("\nNames missing on this machine: in {} of {} samples\n",
                         WithThousands(nameless.samples),
                         WithThousands(model_.events.cpu_samples.size())));
    output_.Write("   samples  GPU work  file\n");
  }
  const std::string indent(22, ' ');
  for (size_t i = 0; i < std::min(nameless.files.size(), kNamelessRows); ++i) {
    const NamelessFile& file = nameless.files[i];
    const std::string numbers =
        Format("{:>10} {:>9}  ", WithThousands(file.samples), WithThousands(file.gpu_work));
    output_.Write(numbers + ToWidth(file.path, kWidth - std::min(numbers.size(), kWidth)) + "\n");
    WriteWrapped(indent, indent, file.reason);
  }
  if (nameless.files.size() > kNamelessRows) {
    output_.Write(Format("  ... {} more\n", nameless.files.size() - kNamelessRows));
  }
  for (LedgerEntry& cause : causes) cause.details.clear();  // the rows say it
  WriteEntries("", causes);
}

}  // namespace

void WriteSummary(Analysis& analysis, KernelNames kernel_names, Output& output) {
  Summary(analysis, kernel_names, output).Write();
}

}  // namespace xpu
