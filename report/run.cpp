#include "report/run.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/analysis.h"
#include "report/import.h"
#include "report/ledger.h"
#include "report/load.h"
#include "report/parts_text.h"
#include "report/progress.h"
#include "report/symbol_export.h"
#include "report/thin.h"

namespace xpu {
namespace {

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat info_a {};
  struct stat info_b {};
  return ::stat(a.c_str(), &info_a) == 0 && ::stat(b.c_str(), &info_b) == 0 &&
         info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

void WriteView(const ReportOptions& options, Analysis& analysis, Analysis* before, Output& output,
               std::string& notes) {
  switch (options.view) {
    case View::kSummary:
      return WriteSummary(analysis, options.kernel_names, output);
    case View::kFolded:
      return WriteFolded(analysis, options.folded, output, notes);
    case View::kFlameGraph:
      return WriteFlameGraph(analysis, options.flame_graph, output, notes);
    case View::kChromeTrace:
      return WriteChromeTrace(analysis, options.trace, output, notes);
    case View::kTop:
      return WriteTop(analysis, options.top, output);
    case View::kDiff:
      return WriteDiff(*before, analysis, options.top, output, notes);
    case View::kScript:
      return WriteScript(analysis, {options.kernel_names, options.graph_stacks}, output);
    case View::kDump:
      return WriteDump(analysis, output);
    case View::kExportSymbols:
    case View::kEmbedSymbols:
    case View::kImport:
      break;
  }
}

void Say(std::string_view line) {
  (void)WriteAll(STDERR_FILENO, Format("xpu-report: {}\n", ForOneLine(line)), "stderr").ok();
}

// Somebody who names a FIFO may not know that nobody writes to it. Not of the shell's <(COMMAND),
// which somebody does.
void TellOfFifo(const std::string& input) {
  struct stat info {};
  struct statfs file_system {};
  if (::stat(input.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  if (::statfs(input.c_str(), &file_system) != 0 || file_system.f_type == PIPEFS_MAGIC) return;
  Say(Format("{}: is a FIFO: waiting for a capture that is written to it", input));
}

// A download may take long: somebody who waits is told for what.
void ShowProgress(std::string_view line) {
  if (::isatty(STDERR_FILENO) == 1) Say(line);
}

SymbolOptions SymbolsOf(const SymbolPlaces& places) {
  using Detail = ModuleSymbols::Detail;
  SymbolOptions options{.symbolizer = {}, .places = places.frames, .python = places.python};
  FileFinder::Options& files = options.symbolizer.files;
  files.symfs = places.symfs;
  if (!places.debug_folders.empty()) files.debug_folders = places.debug_folders;
  if (places.debuginfod) {
    files.debuginfod =
        std::make_shared<Debuginfod>(Debuginfod::Options{.progress = ShowProgress, .problem = Say});
  }
  options.symbolizer.detail = places.inlines        ? Detail::kInlines
                              : places.frames.lines ? Detail::kLines
                                                    : Detail::kNames;
  return options;
}

// Views show the samples of one event; those of --script and of traces say what they are of, and
// the dump holds all.
Status ShowEvent(const ReportOptions& options, Analysis& analysis) {
  if (options.view == View::kDump) return Ok();
  if (options.view == View::kScript && options.event.empty()) return Ok();
  analysis.sampled_events = FindSampledEvents(analysis.model);
  analysis.event_is_asked_for = !options.event.empty();
  if (options.view == View::kChromeTrace && options.event.empty()) {
    KeepOneClock(analysis.model);
    return Ok();
  }
  return KeepEvent(options.event, analysis.model);
}

bool IsForReading(View view) { return view != View::kChromeTrace && view != View::kFlameGraph; }

// What is done with the symbols of the capture instead of a view of it.
Status RunOnSymbols(const ReportOptions& options, Analysis& analysis, ReportOutcome& outcome) {
  const SymbolPlaces& places = options.symbols;
  Result<std::string> done =
      options.view == View::kExportSymbols
          ? ExportSymbols(analysis, places.export_folder)
          : EmbedSymbols(analysis, options.output, places.inlines || places.frames.lines);
  if (!done.ok()) return done.error();
  outcome.notes += done.value();
  return Ok();
}

}  // namespace

Status RunReport(const ReportOptions& options, ReportOutcome& outcome) {
  const bool on_symbols =
      options.view == View::kExportSymbols || options.view == View::kEmbedSymbols;
  std::vector<std::string> inputs = options.captures;
  if (options.view == View::kDiff) inputs.push_back(options.other_capture);
  for (const std::string& input : inputs) {
    if (on_symbols || options.output.empty() || !IsSameFile(options.output, input)) continue;
    return Error{ErrorKind::kUsage, Format("{}: is the capture itself", options.output),
                 "choose another name for -o"};
  }
  if (options.view == View::kImport) {
    XPU_ASSIGN_OR_RETURN(outcome.notes, ImportCuptiText(options.captures.front(), options.output));
    return Ok();
  }
  for (const std::string& input : inputs) TellOfFifo(input);
  Progress progress;
  progress.Begin(Format("reading {}", options.captures.front()));
  XPU_ASSIGN_OR_RETURN(Model model, LoadCaptures(options.captures));
  progress.Begin("matching calls and GPU work");
  Analysis analysis(std::move(model), SymbolsOf(options.symbols), options.correlate);
  if (on_symbols) {
    progress.Stop();  // downloads tell of themselves
    return RunOnSymbols(options, analysis, outcome);
  }
  XPU_RETURN_IF_ERROR(ApplyFilter(options.filter, analysis));
  XPU_RETURN_IF_ERROR(ShowEvent(options, analysis));
  outcome.notes += ThinOut(options.sample_rate, analysis);
  std::unique_ptr<Analysis> before;
  if (options.view == View::kDiff) {
    XPU_ASSIGN_OR_RETURN(Model other, LoadCapture(options.other_capture));
    before =
        std::make_unique<Analysis>(std::move(other), SymbolsOf(options.symbols), options.correlate);
    XPU_RETURN_IF_ERROR(ApplyFilter(options.filter, *before));
    XPU_RETURN_IF_ERROR(ShowEvent(options, *before));
  }
  XPU_ASSIGN_OR_RETURN(Output output, Output::Open(options.output));
  if (options.pager && options.output.empty() && IsForReading(options.view)) {
    output.PageTo(Pager::ForTerminal());
  }
  if (output.is_terminal() || options.symbols.debuginfod) {
    progress.Stop();
  } else {
    progress.Begin("writing");
  }
  WriteView(options, analysis, before.get(), output, outcome.notes);
  progress.Stop();
  const Status status = output.Close();
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  outcome.data_lost = std::any_of(ledger.begin(), ledger.end(), LosesData);
  std::string before_losses;
  if (before != nullptr) {
    const std::vector<LedgerEntry> of_before = BuildLedger(*before);
    if (std::any_of(of_before.begin(), of_before.end(), LosesData)) outcome.data_lost = true;
    if (!of_before.empty()) {
      before_losses =
          Format("of {}:\n{}", ForOneLine(options.other_capture), LedgerText(of_before));
    }
  }
  if (!status.ok() && output.closed_by_reader()) return Ok();
  XPU_RETURN_IF_ERROR(status);
  // The summary and the dump hold the ledger themselves.
  if (options.view != View::kSummary && options.view != View::kDump) {
    outcome.notes += PartsNote(analysis.model) + LedgerText(ledger) + before_losses;
  }
  return Ok();
}

}  // namespace xpu
