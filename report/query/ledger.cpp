#include "report/query/ledger.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/analysis/call_tree.h"
#include "report/base/text.h"
#include "report/query/unfinished_work.h"
#include "report/trace/correlation_counts.h"

namespace xpu {
namespace {

constexpr size_t kMaxDetails = 4;

// Findings of the report alone. Their names are for scripts: never changed.
enum class Finding : uint8_t {
  kLaunchPending,
  kLaunchFailed,
  kLaunchStackMissing,
  kKernelWithoutLaunch,
  kKernelBeforeLaunch,
  kWorkWithoutLaunch,
  kWaitWithoutLaunch,
  kOtherPart,
  kGraphNodeUnknown,
  kLateEvent,
  kClockPairsMissing,
  kClockSet,
  kPythonStackDoubtful,
  kCallTreeFull,
  kSourceTextFull,
  kHeaderDamaged,
  kFileMismatch,
  kFileMissing,
  kFileUnreadable,
  kFileStripped,
  kFileSlice,
  kFileNoLines,
  kFileLinesUnread,
  kPartMissing,
  kCaptureAppended,
  kUnknownEvents,
  kCount,
};

struct FindingInfo {
  std::string_view name;
  Severity severity;
  std::string_view what;
  std::string_view advice;
};

constexpr std::array<FindingInfo, static_cast<size_t>(Finding::kCount)> kFindings{{
    {"launch_pending", Severity::kPartial,
     "{launch|launches} without a kernel record, shown as "
     "[GPU_Launch_Pending]",
     "Their kernels had not finished when the recording ended, or records were lost without being "
     "counted."},
    {"launch_failed", Severity::kNote, "{launch|launches} that CUDA rejected with an error", ""},
    {"launch_stack_missing", Severity::kPartial,
     "CUDA {call|calls} without a stack, shown under "
     "[unknown launch]",
     ""},
    {"kernel_without_launch", Severity::kPartial,
     "{kernel or graph replay|kernels and graph replays} whose launch call is not in the capture, "
     "shown under "
     "[unknown launch]",
     ""},
    {"kernel_before_launch", Severity::kPartial,
     "{kernel that seems|kernels that seem} to start before {its|their} launch",
     "The clocks of GPU and CPU are not aligned well: differences between their times are off by "
     "as "
     "much."},
    {"work_without_launch", Severity::kPartial,
     "{memory operation|memory operations} whose call is not in the capture, shown under "
     "[unknown launch]",
     ""},
    {"wait_without_launch", Severity::kNote,
     "{synchronization|synchronizations} whose call is not in the capture",
     "CUPTI also reports calls that only query an event as waits; there are too many of these to "
     "record."},
    {"other_part", Severity::kNote,
     "{call or operation|calls and operations} whose counterpart is in a part of the recording "
     "that "
     "was not given",
     ""},
    {"graph_node_unknown", Severity::kPartial,
     "{operation|operations} of CUDA graphs without the code that added {it|them}, shown under "
     "[captured at]",
     "The graph is older than the recording, or the records about it were lost: see the other "
     "entries."},
    {"late_event", Severity::kNote, "{event|events} later than the end of the recording", ""},
    {"clock_pairs_missing", Severity::kPartial, "CUDA {process|processes} without clock pairs",
     "GPU times are aligned only by the start of the recording."},
    {"clock_set", Severity::kNote, "{adjustment|adjustments} of the clock of the GPU records", ""},
    {"python_stack_doubtful", Severity::kPartial,
     "distinct {stack|stacks} with more or fewer interpreter frames than {its|their} Python "
     "functions require",
     "What an interpreter frame runs is shown as [python frames cut] where it is not known, as "
     "below a greenlet; native frames may be next to a function that did not call them. To see "
     "both separately: --python=only, --python=native."},
    {"call_tree_full", Severity::kPartial,
     "{frame|frames} left out of call paths; {its|their} time is shown at {its caller|their "
     "callers}",
     "To show a part of the capture: --pid, --time, --comm."},
    {"source_text_full", Severity::kPartial, "{part|parts} of source files left out", ""},
    {"header_damaged", Severity::kPartial,
     "{capture|captures} with a damaged header; the events after it are read", "Copy it again."},
    {"file_mismatch", Severity::kPartial,
     "{file that is|files that are} a different build from the recorded one and {is|are} not used",
     "Run xpu-report on the recording machine, or specify where the recorded build is: --symfs "
     "DIR."},
    {"file_missing", Severity::kPartial,
     "{file|files} that cannot be read on this machine; {its|their} frames have no names",
     "Store symbols in the capture (xpu-record --symbols=slice), or specify where the files are: "
     "--symfs DIR."},
    {"file_unreadable", Severity::kPartial,
     "{file that is not an ELF file; its|files that are not ELF files; their} frames have no names",
     ""},
    {"file_stripped", Severity::kNote,
     "{file|files} without symbols; {its|their} frames have no names",
     "Install their debug symbols, or specify where they are: --debug-dir DIR, --debuginfod."},
    {"file_slice", Severity::kPartial,
     "{file|files} whose symbols in the capture are damaged or incomplete",
     "Their names are taken from the files themselves if these are on this machine."},
    {"file_no_lines", Severity::kPartial,
     "{file|files} without debug information on this machine; {its|their} frames have no lines",
     "Specify where it is: --debug-dir DIR, --debuginfod; or record with xpu-record "
     "--symbols=full."},
    {"file_lines_unread", Severity::kPartial,
     "{file|files} with unreadable debug information; {its|their} frames have no lines", ""},
    {"part_missing", Severity::kLost,
     "{part|parts} of the recording missing between those that were given",
     "Name all parts: capture.*.xpu. xpu-record --rotate-keep removes only the oldest ones."},
    {"capture_appended", Severity::kLost,
     "{file|files} with more captures after the first one, which are not shown",
     "Captures cannot be concatenated: give xpu-report each file by name."},
    {"unknown_events", Severity::kNote, "{event|events} of kinds unknown to this version",
     "A newer xpu-report can show them."},
}};

bool RecordedWithoutStacks(const Model& model) {
  return std::ranges::any_of(model.events.recording_info, [](const RecordingInfo& info) {
    return info.launch_stacks == LaunchStackSource::kNone;
  });
}

Finding FindingOf(FileProblem problem) {
  switch (problem) {
    case FileProblem::kMismatch:
      return Finding::kFileMismatch;
    case FileProblem::kUnreadable:
      return Finding::kFileUnreadable;
    case FileProblem::kNoSymbols:
      return Finding::kFileStripped;
    case FileProblem::kSlice:
      return Finding::kFileSlice;
    case FileProblem::kLines:
      return Finding::kFileLinesUnread;
    case FileProblem::kNone:
    case FileProblem::kMissing:
      break;
  }
  return Finding::kFileMissing;
}

class Builder {
 public:
  explicit Builder(const Analysis& analysis) : analysis_(analysis) {}

  std::vector<LedgerEntry> Build() {
    AddRecorded();
    AddProblems();
    AddUntimed();
    AddFindings();
    AddFiles();
    for (size_t i = 0; i < entries_.size(); ++i) {
      LedgerEntry& entry = entries_[i];
      entry.what = ForCount(entry.count, what_[i].empty() ? "{loss|losses} of kind " : what_[i]);
      if (what_[i].empty()) entry.what += ForOneLine(entry.name);
      ShortenDetails(entry);
    }
    std::erase_if(entries_, [](const LedgerEntry& entry) { return entry.count == 0; });
    std::sort(entries_.begin(), entries_.end(), [](const LedgerEntry& a, const LedgerEntry& b) {
      return a.severity != b.severity ? a.severity > b.severity : a.name < b.name;
    });
    return std::move(entries_);
  }

 private:
  LedgerEntry& Entry(std::string_view name);
  LedgerEntry& Add(LossKind kind, uint64_t count);
  LedgerEntry& Add(Finding finding, uint64_t count);
  void AddDetail(LedgerEntry& entry, std::string_view detail);
  static void ShortenDetails(LedgerEntry& entry);
  void AddRecorded();
  void AddProblems();
  void AddUntimed();
  void AddFindings();
  void AddMissingCounterparts(const MissingCounterparts& elsewhere);
  void AddFullCallTree();
  void AddMissingEnd();
  void AddFiles();

  const Analysis& analysis_;
  std::vector<LedgerEntry> entries_;
  std::vector<std::string_view>
      what_;  // of each, a pattern of ForCount; "": a newer version's loss
  std::unordered_map<std::string, size_t> by_name_;
  std::unordered_set<std::string> details_;  // name, detail
};

LedgerEntry& Builder::Entry(std::string_view name) {
  const auto [at, is_new] = by_name_.try_emplace(std::string(name), entries_.size());
  if (is_new) {
    LedgerEntry& entry = entries_.emplace_back();
    entry.name = name;
    // A loss that only a newer version knows still counts as one.
    const LossInfo* info = FindLoss(name);
    entry.severity = info == nullptr ? Severity::kLost : info->severity;
    if (info != nullptr) entry.advice = info->advice;
    what_.push_back(info == nullptr ? std::string_view() : info->what);
  }
  return entries_[at->second];
}

LedgerEntry& Builder::Add(LossKind kind, uint64_t count) {
  LedgerEntry& entry = Entry(InfoOf(kind).name);
  entry.count = AddSaturated(entry.count, count);
  return entry;
}

LedgerEntry& Builder::Add(Finding finding, uint64_t count) {
  const FindingInfo& info = kFindings.at(static_cast<size_t>(finding));
  LedgerEntry& entry = Entry(info.name);
  entry.severity = info.severity;
  what_[by_name_.at(entry.name)] = info.what;
  // A loss that the recorder counts under the same name has the same hint.
  if (!info.advice.empty()) entry.advice = info.advice;
  entry.count = AddSaturated(entry.count, count);
  return entry;
}

void Builder::AddDetail(LedgerEntry& entry, std::string_view detail) {
  if (detail.empty() || !details_.insert(Format("{}\n{}", entry.name, detail)).second) return;
  entry.details.emplace_back(detail);
}

void Builder::ShortenDetails(LedgerEntry& entry) {
  if (entry.details.size() <= kMaxDetails) return;
  const size_t more = entry.details.size() - kMaxDetails;
  entry.details.resize(kMaxDetails);
  entry.details.push_back(Format("and {} more", WithThousands(more)));
}

void Builder::AddRecorded() {
  for (const Loss& loss : analysis_.model.events.losses) {
    LedgerEntry& entry = Entry(analysis_.model.Text(loss.name));
    entry.count = AddSaturated(entry.count, loss.count);
    AddDetail(entry, analysis_.model.Text(loss.detail));
  }
}

void Builder::AddProblems() {
  const ReadProblems& problems = analysis_.model.problems;
  Add(LossKind::kBlockDamaged, problems.blocks_damaged);
  Add(Finding::kHeaderDamaged, problems.header_damaged ? 1 : 0);
  // Where blocks are damaged, the end may have been in one of them.
  const bool no_end = analysis_.model.events.recording_end.empty() && problems.blocks_damaged == 0;
  if (problems.cut || no_end) AddMissingEnd();
  Add(LossKind::kReferenceLost, problems.references_lost);
  Add(Finding::kPartMissing, analysis_.model.parts.missing);
  Add(Finding::kCaptureAppended, problems.captures_follow ? 1 : 0);
  Add(Finding::kUnknownEvents, problems.unknown_events);
}

void Builder::AddMissingEnd() {
  LedgerEntry& entry = Add(LossKind::kFileCut, 1);
  const LoadedEvents& events = analysis_.model.events;
  if (events.recording_info.empty() && analysis_.recorded_until_ns == 0) {
    AddDetail(entry, "it contains nothing of the recording");
  }
  // Each of several recordings has its own.
  if (events.recording_info.size() != 1) return;
  if (const uint64_t ns = analysis_.recorded_until_ns; ns > 0) {
    AddDetail(entry, Format("it contains the first {} of the recording", HumanDuration(ns)));
  }
  const SymbolDetail symbols = events.recording_info.front().symbols;
  const bool wants_symbols = symbols == SymbolDetail::kNames || symbols == SymbolDetail::kLines;
  const bool has_stacks = !analysis_.CpuSamples().empty() || !analysis_.ProbeHits().empty() ||
                          !events.launch_stacks.empty();
  if (!wants_symbols || !has_stacks || !events.symbol_slices.empty()) return;
  AddDetail(entry, "it has no names of functions, which are written last");
  entry.advice =
      "The recorder was killed, the disk was full, or the file was copied in part. Names are taken "
      "from the files on this machine; if those are elsewhere: --symfs DIR.";
}

void Builder::AddUntimed() {
  const Correlation::Counts& counts = analysis_.counts();
  LedgerEntry& entry = Add(LossKind::kInvalidTime, counts.work_without_time);
  const bool is_stuck = counts.work_without_time > 0 && HasStuckWork(analysis_);
  if (is_stuck) {
    entry.advice = "The work failed or had not ended: xpu-report --top --table unfinished_sum.";
  }
  if (counts.node_work_without_time == 0) return;
  AddDetail(entry, Format("{} of them from CUDA graph nodes",
                          WithThousands(counts.node_work_without_time)));
  if (is_stuck) return;
  entry.advice =
      "CUPTI ran out of the device buffers in which the GPU records its times: a graph that is "
      "replayed often fills them. Record each replay as a whole with --cuda-graph-trace=graph.";
}

void Builder::AddFindings() {
  const Correlation& correlation = analysis_.correlation;
  const Correlation::Counts& counts = analysis_.counts();
  const MissingCounterparts elsewhere =
      FindMissingCounterparts(analysis_.model, correlation, analysis_.shown);
  AddMissingCounterparts(elsewhere);
  Add(Finding::kLaunchPending, counts.launches_pending - elsewhere.pending);
  Add(Finding::kLaunchFailed, counts.launches_failed + counts.launches_probed_failed);
  // Stacks that were not asked for are not missing.
  if (!analysis_.model.events.launch_stacks.empty() || !RecordedWithoutStacks(analysis_.model)) {
    Add(Finding::kLaunchStackMissing,
        StacksNotCounted(analysis_.model, correlation, analysis_.shown));
  }
  Add(Finding::kKernelWithoutLaunch, counts.kernels_without_launch - elsewhere.kernels);
  Add(Finding::kWorkWithoutLaunch, counts.work_without_launch - elsewhere.copies);
  Add(Finding::kWaitWithoutLaunch, counts.waits_without_launch - elsewhere.waits);
  Add(Finding::kGraphNodeUnknown, counts.node_work_without_origin);
  if (const uint64_t updates = analysis_.graph_nodes.updates_of_unknown(); updates > 0) {
    AddDetail(Add(Finding::kGraphNodeUnknown, updates),
              Format("updates of unidentified graphs: {}", WithThousands(updates)));
  }
  Add(Finding::kLateEvent, counts.late_events);
  Add(Finding::kPythonStackDoubtful, analysis_.stacks.doubtful());
  AddFullCallTree();
  Add(Finding::kSourceTextFull, analysis_.sources.left_out);
  if (counts.kernels_before_launch > 0) {
    AddDetail(Add(Finding::kKernelBeforeLaunch, counts.kernels_before_launch),
              Format("by up to {} ns",
                     // Unsigned: a damaged capture may have the one value without a negative.
                     uint64_t{0} - static_cast<uint64_t>(counts.worst_margin_ns.value_or(0))));
  }
  uint64_t without_pairs = 0;
  for (const auto& [instance, process] : correlation.processes) {
    const auto fit = analysis_.clocks.fits().find(instance);
    const bool has_pairs = fit != analysis_.clocks.fits().end() && fit->second.pairs_used() > 0;
    if (!has_pairs && process.has_work) ++without_pairs;
    if (has_pairs) Add(Finding::kClockSet, fit->second.steps());
  }
  Add(Finding::kClockPairsMissing, without_pairs);
}

// Events that a cut separates are not lost: the parts were asked for, and those that --rotate-keep
// removed too.
void Builder::AddMissingCounterparts(const MissingCounterparts& elsewhere) {
  const auto add = [this](uint64_t count, std::string_view what, std::string_view other) {
    if (count == 0) return;
    AddDetail(Add(Finding::kOtherPart, count),
              Format("{} {} whose {}", WithThousands(count), ForCount(count, what), other));
  };
  constexpr std::string_view kCall = "call is in the previous part";
  add(elsewhere.kernels, "{kernel or graph replay|kernels and graph replays}", kCall);
  add(elsewhere.copies, "{memory operation|memory operations}", kCall);
  add(elsewhere.waits, "{synchronization|synchronizations}", kCall);
  add(elsewhere.stacks, "{call|calls}", "stack is in the previous part");
  add(elsewhere.pending, "{launch|launches}", "kernel is in the next part");
}

void Builder::AddFullCallTree() {
  const CallTreeLimit& trees = analysis_.call_trees;
  if (trees.stacks_left_out > 0) {
    AddDetail(Add(Finding::kCallTreeFull, trees.stacks_left_out),
              Format("stacks left out after {} frames", WithThousands(trees.max_frames)));
  }
  if (trees.frames_left_out == 0) return;
  AddDetail(Add(Finding::kCallTreeFull, trees.frames_left_out),
            Format("more than {} call paths, or 64 NVTX ranges around one",
                   WithThousands(trees.max_nodes)));
}

void Builder::AddFiles() {
  for (const Symbolizer::Problem& problem : analysis_.symbolizer.problems()) {
    const Finding finding = FindingOf(problem.kind);
    AddDetail(Add(finding, 1), finding == Finding::kFileStripped ? problem.path : problem.message);
  }
  Add(Finding::kFileSlice, analysis_.slices.incomplete);
  if (!analysis_.lines_if_any) {
    Add(Finding::kFileNoLines, analysis_.symbolizer.files_without_lines());
  }
}

// They name the same files under each view. What is about lines depends on the view.
bool IsAboutNames(const LedgerEntry& entry) {
  return IsAboutSymbols(entry) && entry.name.find("lines") == std::string::npos;
}

// "names: 3 files that are ... (file_mismatch): libc.so.6 and 2 more"
void AddFiles(const LedgerEntry& entry, std::string& line) {
  AppendFormat(line, "names: {} {} ({})", WithThousands(entry.count), entry.what, entry.name);
  if (!entry.details.empty()) AppendFormat(line, ": {}", ForOneLine(entry.details.front()));
  if (entry.details.size() > 1) AppendFormat(line, " and {} more", entry.details.size() - 1);
  line += '\n';
}

}  // namespace

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kPartial:
      return "partial";
    case Severity::kLost:
      break;
  }
  return "lost";
}

std::string_view SeverityName(const LedgerEntry& entry) {
  return LosesData(entry) ? SeverityName(entry.severity) : "note";
}

std::vector<LedgerEntry> BuildLedger(const Analysis& analysis) { return Builder(analysis).Build(); }

std::string LedgerText(const std::vector<LedgerEntry>& ledger) {
  std::string text;
  std::string stacks;
  std::string names;
  for (const LedgerEntry& entry : ledger) {
    if (entry.severity == Severity::kNote) continue;
    if (IsAboutStacks(entry)) {
      AppendFormat(stacks, "{}{} {}", stacks.empty() ? "" : ", ", WithThousands(entry.count),
                   entry.name);
      continue;
    }
    if (IsAboutNames(entry)) {
      AddFiles(entry, names);
      continue;
    }
    AppendFormat(text, "{} {} ({})\n", WithThousands(entry.count), entry.what,
                 ForOneLine(entry.name));
    for (const std::string& detail : entry.details) {
      AppendFormat(text, "  {}\n", ForOneLine(detail));
    }
    if (!entry.advice.empty()) AppendFormat(text, "  hint: {}\n", entry.advice);
  }
  text += names;
  if (!stacks.empty())
    AppendFormat(text, "incomplete stacks: {}; the summary has details\n", stacks);
  return text;
}

}  // namespace xpu
