#include "report/cli/run.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/quote.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/base/output.h"
#include "report/base/terminal.h"
#include "report/import/import.h"
#include "report/model/load.h"
#include "report/model/recorded_time.h"
#include "report/query/ledger.h"
#include "report/ranks/collectives.h"
#include "report/symbols/symbol_export.h"
#include "report/views/tables/top_tables.h"
#include "report/workload/step_selection.h"

namespace xpu {
namespace {

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat info_a {};
  struct stat info_b {};
  return ::stat(a.c_str(), &info_a) == 0 && ::stat(b.c_str(), &info_b) == 0 &&
         info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

void Say(std::string_view line) {
  (void)WriteAll(STDERR_FILENO, Format("xpu-report: {}\n", ForOneLine(line)), "stderr").ok();
}

// A user who names a FIFO may not know that nobody writes to it. Not for the shell's <(COMMAND),
// which has a writer.
void ReportFifoWait(const std::string& input) {
  struct stat info {};
  struct statfs file_system {};
  if (::stat(input.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  if (::statfs(input.c_str(), &file_system) != 0 || file_system.f_type == PIPEFS_MAGIC) return;
  Say(Format("{}: waiting for a capture to be written to this FIFO", input));
}

// A download may take long: a user who waits sees for what.
void ShowProgress(std::string_view line) {
  if (::isatty(STDERR_FILENO) == 1) Say(line);
}

SymbolOptions SymbolsOf(const ReportOptions& report) {
  using Detail = ModuleSymbols::Detail;
  const SymbolPlaces& places = report.symbols;
  SymbolOptions options{.symbolizer = {}, .places = places.frames, .python = places.python};
  const bool are_asked_for = places.inlines || places.frames.lines;
  options.lines_if_any = report.task == Task::kView && report.view->shows_lines && !are_asked_for;
  if (report.view->shows_tables && TableShowsLines(report.table)) options.places.lines = true;
  FileFinder::Options& files = options.symbolizer.files;
  files.symfs = places.symfs;
  files.reading = DebugReading::kConfined;
  if (!places.debug_directories.empty()) files.debug_directories = places.debug_directories;
  if (places.debuginfod) {
    files.debuginfod =
        std::make_shared<Debuginfod>(Debuginfod::Options{.progress = ShowProgress, .problem = Say});
  }
  options.symbolizer.detail = places.inlines         ? Detail::kInlines
                              : places.frames.lines  ? Detail::kLines
                              : options.lines_if_any ? Detail::kLines
                                                     : Detail::kNames;
  return options;
}

Status ShowEvent(const ReportOptions& options, Analysis& analysis) {
  const bool is_asked_for = !options.event.empty();
  const View::Events shown = options.view->events;
  if (shown == View::Events::kAll && !is_asked_for) return Ok();
  analysis.sampled_events = FindSampledEvents(analysis.model, analysis.shown);
  analysis.event_is_asked_for = is_asked_for;
  if (shown == View::Events::kOneClockAndMoments && !is_asked_for) {
    SelectOneClock(analysis.model, analysis.shown);
    return Ok();
  }
  return SelectEvent(options.event, analysis.model, analysis.shown);
}

// A page of HTML or JSON is nothing to read on a terminal.
Status CheckIsNotForTerminal(const ReportOptions& options) {
  const bool is_standard_output = options.output.empty() || options.output == "-";
  if (options.task != Task::kView || options.view->is_for_reading || !is_standard_output ||
      ::isatty(STDOUT_FILENO) != 1) {
    return Ok();
  }
  return Error{ErrorKind::kUsage, Format("{}: standard output is a terminal", options.view->option),
               "name a file with -o, or redirect it"};
}

// HTML in a file called x.svg, or text in x.html, is shown by nothing.
Status CheckOutputName(const ReportOptions& options) {
  constexpr std::array<std::string_view, 7> kOthers = {".svg",  ".png", ".pdf", ".jpg",
                                                       ".html", ".csv", ".json"};
  constexpr size_t kPictures = 5;  // the first of them
  std::string_view name = options.output;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  const std::string_view own = options.view->file_name_end;
  const bool is_text = own.empty();
  if (options.task == Task::kView && options.view->write_to != nullptr &&
      options.output.ends_with(".gz")) {
    return Error{ErrorKind::kUsage, Format("{}: this view does not compress", options.output),
                 Format("-o {}, and gzip it afterwards", name)};
  }
  const bool is_any = options.view->write_to != nullptr || (!is_text && name.ends_with(own));
  if (options.task != Task::kView || is_any) return Ok();
  for (const std::string_view other :
       std::span(kOthers).first(options.view->shows_tables ? kPictures : kOthers.size())) {
    if (!name.ends_with(other)) continue;
    name.remove_suffix(other.size());
    if (is_text && (other == ".csv" || other == ".json")) {
      return Error{ErrorKind::kUsage, Format("{}: this view writes text", options.output),
                   Format("--top -o {}{} writes tables", name, other)};
    }
    if (is_text) {
      return Error{ErrorKind::kUsage, Format("{}: this view writes text", options.output),
                   Format("--flamegraph -o {}.html writes a flame graph", name)};
    }
    return Error{
        ErrorKind::kUsage,
        Format("{}: {} does not write this file format", options.output, options.view->option),
        Format("use -o {}{}", name, own)};
  }
  return Ok();
}

// Exports or embeds the symbols of the capture instead of writing a view.
Status RunOnSymbols(const ReportOptions& options, Analysis& analysis, ReportOutcome& outcome) {
  const SymbolPlaces& places = options.symbols;
  Result<std::string> done =
      options.task == Task::kExportSymbols
          ? ExportSymbols(analysis, places.export_directory)
          : EmbedSymbols(analysis, options.output, places.inlines || places.frames.lines);
  if (!done.ok()) return done.error();
  outcome.notes += done.value();
  return Ok();
}

bool IsOnSymbols(const ReportOptions& options) {
  return options.task == Task::kExportSymbols || options.task == Task::kEmbedSymbols;
}

bool Compares(const ReportOptions& options) {
  return options.task == Task::kView && !options.view->other_capture.empty();
}

std::vector<std::string> InputsOf(const ReportOptions& options) {
  std::vector<std::string> inputs = options.captures;
  if (Compares(options)) {
    inputs.insert(inputs.end(), options.other_captures.begin(), options.other_captures.end());
  }
  return inputs;
}

Status CheckOutputIsNoInput(const ReportOptions& options) {
  if (IsOnSymbols(options) || options.output.empty()) return Ok();
  for (const std::string& input : InputsOf(options)) {
    if (!IsSameFile(options.output, input)) continue;
    return Error{ErrorKind::kUsage,
                 Format("{}: the output would overwrite the capture", options.output),
                 "choose another name for -o"};
  }
  return Ok();
}

// A capture that is not there may be a mistaken command line.
Error WithHintOfMistake(Error error, const std::vector<std::string>& captures) {
  if (error.kind != ErrorKind::kNotFound) return error;
  for (const std::string& capture : captures) {
    if (IsTableName(capture) && ::access(capture.c_str(), F_OK) != 0) {
      error.hint = Format("--table {} prints this table", capture);
      return error;
    }
  }
  struct stat input {};
  const bool has_input =
      ::fstat(STDIN_FILENO, &input) == 0 && (S_ISREG(input.st_mode) || S_ISFIFO(input.st_mode));
  if (captures == ViewOptions().captures && has_input) {
    error.hint += "; to read standard input: xpu-report -";
  }
  return error;
}

// The part of the capture that the view is about.
Status Select(const ReportOptions& options, Analysis& analysis) {
  XPU_ASSIGN_OR_RETURN(analysis.shown, SelectPart(options.filter, analysis));
  if (options.steps.range) {
    XPU_RETURN_IF_ERROR(
        SelectSteps(*options.steps.range, FindSteps(analysis, options.steps.definition), analysis));
    analysis.shown.filter_text = options.filter.Text();
  }
  return ShowEvent(options, analysis);
}

// Keeps the slow steps of what `analysis` shows; the result shows the median ones.
Result<std::unique_ptr<Analysis>> SelectSlowSteps(const ReportOptions& options, Analysis& analysis,
                                                  SlowSteps& steps) {
  XPU_ASSIGN_OR_RETURN(
      steps,
      FindSlowSteps(ShownSteps(FindSteps(analysis, options.steps.definition), {}, analysis.shown)));
  auto median = std::make_unique<Analysis>(analysis);
  SelectSteps(steps.slow.series, analysis);
  SelectSteps(steps.median.series, *median);
  return median;
}

// Several captures to compare with are runs, and so are the others: each is one by itself.
bool ComparesRuns(const ReportOptions& options) {
  return Compares(options) && options.other_captures.size() > 1;
}

Result<std::unique_ptr<Analysis>> LoadOther(const ReportOptions& options,
                                            const std::string& capture) {
  XPU_ASSIGN_OR_RETURN(Model model, LoadCapture(capture));
  auto other = std::make_unique<Analysis>(std::move(model), SymbolsOf(options), options.correlate);
  XPU_RETURN_IF_ERROR(Select(options, *other));
  return other;
}

// With --by step, the capture shows the steps after the warm-up.
Result<DiffCapture> Compared(const ReportOptions& options, Analysis& analysis) {
  DiffCapture capture{.analysis = &analysis};
  if (!options.per_step) return capture;
  capture.steps = ShownSteps(FindSteps(analysis, options.steps.definition), options.steps.range,
                             analysis.shown);
  for (StepSeries& series : capture.steps) {
    series.steps.erase(series.steps.begin(),
                       series.steps.begin() + static_cast<ptrdiff_t>(series.warm_up));
    series.warm_up = 0;
  }
  if (capture.steps.empty()) {
    return Error{ErrorKind::kUsage,
                 Format("{}: no steps were found", ForOneLine(analysis.model.path)),
                 "--step nvtx:REGEX or function:REGEX says what a step is"};
  }
  SelectSteps(capture.steps, analysis);
  return capture;
}

// `others` gets what it loads.
Result<DiffCaptures> LoadCompared(const ReportOptions& options, Analysis& analysis,
                                  std::vector<std::unique_ptr<Analysis>>& others) {
  DiffCaptures captures;
  if (!Compares(options)) return captures;
  const auto add = [&](const std::string& path, std::vector<DiffCapture>& side) -> Status {
    XPU_ASSIGN_OR_RETURN(std::unique_ptr<Analysis> other, LoadOther(options, path));
    XPU_ASSIGN_OR_RETURN(DiffCapture capture, Compared(options, *other));
    side.push_back(std::move(capture));
    others.push_back(std::move(other));
    return Ok();
  };
  for (const std::string& path : options.other_captures) {
    XPU_RETURN_IF_ERROR(add(path, captures.before));
  }
  XPU_ASSIGN_OR_RETURN(DiffCapture first, Compared(options, analysis));
  captures.after.push_back(std::move(first));
  for (size_t i = 1; ComparesRuns(options) && i < options.captures.size(); ++i) {
    XPU_RETURN_IF_ERROR(add(options.captures[i], captures.after));
  }
  return captures;
}

// Returns the losses to print beside a view that does not. Call it after the view: what the
// symbolizer finds on the way belongs into the ledger.
std::string FindLosses(const ReportOptions& options, const Analysis& analysis,
                       const std::vector<std::unique_ptr<Analysis>>& others, bool& data_lost) {
  const std::vector<LedgerEntry> ledger = BuildLedger(analysis);
  data_lost = std::any_of(ledger.begin(), ledger.end(), LosesData);
  std::string of_others;
  for (const std::unique_ptr<Analysis>& other : others) {
    const std::vector<LedgerEntry> own = BuildLedger(*other);
    if (std::any_of(own.begin(), own.end(), LosesData)) data_lost = true;
    if (own.empty()) continue;
    AppendFormat(of_others, "in {}:\n{}", ForOneLine(other->model.path), LedgerText(own));
  }
  if (options.view->has_ledger) return {};
  return PartsNote(analysis.model) + WindowsNote(analysis.model) + LedgerText(ledger) + of_others;
}

// Steps that were asked for and are not there. Options that select some of them fail then. Called
// after the view and the ledger: it looks up names of functions.
std::string NoStepsNote(const ReportOptions& options, Analysis& analysis) {
  const bool is_asked_for = options.steps.definition.kind != StepDefinition::Kind::kDetected;
  if (!is_asked_for || options.steps.range || options.slow_steps) return {};
  if (!FindSteps(analysis, options.steps.definition).empty()) return {};
  const std::string& filters = analysis.shown.filter_text;
  return Format(
      "no steps to show: none match --step {}{}{}{}\n", QuoteForShell(options.filter.step_text),
      filters.empty() ? "" : " ", filters,
      FindPauses(analysis.model).empty() ? "" : ", or a pause of the recording cuts each");
}

// Says that no event matches the filters. Views of call paths and the summary say it themselves.
std::string NoMatchesNote(const ReportOptions& options, const Analysis& analysis) {
  const std::string& filters = analysis.shown.filter_text;
  if (options.view->shows_paths || options.view->has_ledger || filters.empty() ||
      !analysis.ShowsNothing()) {
    return {};
  }
  return Format("nothing to show: no event matches {}\n", filters);
}

}  // namespace

Status PrintHelp(const Help& help) {
  XPU_ASSIGN_OR_RETURN(Output output, Output::Open(""));
  output.Write(ShownText::Lines(help.text));
  const Status status = output.Close();
  return output.closed_by_reader() ? Ok() : status;
}

Status RunReport(const ReportOptions& options, ReportOutcome& outcome) {
  XPU_RETURN_IF_ERROR(CheckIsNotForTerminal(options));
  XPU_RETURN_IF_ERROR(CheckOutputIsNoInput(options));
  XPU_RETURN_IF_ERROR(CheckOutputName(options));
  if (options.task == Task::kImport) {
    XPU_ASSIGN_OR_RETURN(outcome.notes, ImportCuptiText(options.captures.front(), options.output));
    return Ok();
  }
  for (const std::string& input : InputsOf(options)) ReportFifoWait(input);
  Progress progress;
  progress.Begin(Format("reading {}", options.captures.front()));
  Result<Model> loaded =
      LoadCaptures(ComparesRuns(options) ? std::vector{options.captures.front()} : options.captures,
                   RefineHostClocks, &outcome.notes);
  if (!loaded.ok()) return WithHintOfMistake(loaded.error(), options.captures);
  progress.Begin("matching calls and GPU work");
  Analysis analysis(std::move(loaded).value(), SymbolsOf(options), options.correlate);
  if (IsOnSymbols(options)) {
    progress.Stop();  // downloads report themselves
    return RunOnSymbols(options, analysis, outcome);
  }
  XPU_RETURN_IF_ERROR(Select(options, analysis));
  outcome.notes += SelectOneOf(options.sample_rate, analysis.trace(), analysis.shown);
  std::vector<std::unique_ptr<Analysis>> others;
  XPU_ASSIGN_OR_RETURN(const DiffCaptures compared, LoadCompared(options, analysis, others));
  SlowSteps slow_steps;
  std::unique_ptr<Analysis> median_steps;
  if (options.slow_steps) {
    XPU_ASSIGN_OR_RETURN(median_steps, SelectSlowSteps(options, analysis, slow_steps));
  }
  const View& view = *options.view;
  if (view.write_to != nullptr) {
    progress.Begin("writing");
    XPU_RETURN_IF_ERROR(view.write_to(options, analysis, options.output));
    progress.Stop();
    outcome.notes += FindLosses(options, analysis, others, outcome.data_lost);
    return Ok();
  }
  XPU_ASSIGN_OR_RETURN(Output output, Output::Open(options.output));
  if (options.pager && options.output.empty() && view.is_for_reading) {
    output.PageTo(Pager::ForTerminal());
  }
  if (output.is_terminal() || options.symbols.debuginfod) {
    progress.Stop();
  } else {
    progress.Begin("writing");
    output.ShowOn(progress);
  }
  view.write({.options = options,
              .analysis = analysis,
              .output = output,
              .notes = outcome.notes,
              .slow_steps = options.slow_steps ? &slow_steps : nullptr,
              .median_steps = median_steps.get(),
              .compared = compared});
  progress.Stop();
  const Status status = output.Close();
  const std::string losses = FindLosses(options, analysis, others, outcome.data_lost);
  if (!status.ok() && output.closed_by_reader()) return Ok();
  XPU_RETURN_IF_ERROR(status);
  outcome.notes += NoMatchesNote(options, analysis) + NoStepsNote(options, analysis) + losses;
  return Ok();
}

}  // namespace xpu
