#include "report/cli/options.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "format/base/number.h"
#include "format/base/split.h"
#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/cli/view_choice.h"
#include "report/query/call_tree_builder.h"
#include "report/views/tables/top_tables.h"
#include "report/workload/step_selection.h"
#include "report/workload/steps.h"

namespace xpu {
namespace {

constexpr char kSeeHelp[] = "xpu-report --help lists the options";

// Options of perf report and nsys stats, and what does the same here.
constexpr OtherToolOption kOtherToolOptions[] = {
    {"--stdio", "text is the default: a summary, or tables with --top"},
    {"--tui", "--flamegraph -o FILE.html is interactive; --top prints tables"},
    {"--gui", "--flamegraph -o FILE.html is interactive; --top prints tables"},
    {"--csv", "--top --format csv prints tables as CSV"},
    {"--json", "--top --format json prints tables as JSON"},
    {"--input", "-i CAPTURE, or the name alone"},
    {"-r", "--table NAME prints one table; --list-tables lists them"},
    {"--report", "--table NAME prints one table; --list-tables lists them"},
    {"-f", "--top --format csv or json"},
    {"-g", "--flamegraph, --folded and --table callpath_sum show stacks"},
    {"--call-graph", "--flamegraph, --folded and --table callpath_sum show stacks"},
    {"--children", "--table cpu_func_sum has the time of a function with and without its callees"},
    {"--no-children",
     "--table cpu_func_sum has the time of a function with and without its callees"},
    {"-s", "--top --sort COLUMN"},
    {"--comms", "--comm NAME,..."},
    {"--gpu", "--device N,... selects GPUs"},
    {"--gpus", "--device N,... selects GPUs"},
    {"--kernel-name", "--kernel REGEX selects kernels; --kernel-names WHICH shortens their names"},
    {"-k", "--kernel REGEX selects kernels"},
    {"--stats", "without a view, xpu-report prints the summary"},
    {"--timeunit", "tables are in nanoseconds; --folded has --unit"},
    {"--force-overwrite", "an existing file is replaced"},
    {"--force-export", "omit it: a capture needs no export"},
};

Error UsageError(std::string message) {
  return Error{ErrorKind::kUsage, std::move(message), kSeeHelp};
}

template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

// --by: what stacks begin with, and what --diff compares.
constexpr std::pair<std::string_view, GroupBy> kGroups[] = {
    {"thread", GroupBy::kThread},      {"process", GroupBy::kProcess}, {"stream", GroupBy::kStream},
    {"device", GroupBy::kDevice},      {"rank", GroupBy::kRank},       {"host", GroupBy::kHost},
    {"container", GroupBy::kContainer}};
constexpr std::pair<std::string_view, std::string_view> kDiffTables[] = {
    {"step", ""}, {"operator", "op_sum"}, {"module", "module_sum"}, {"path", "callpath_sum"}};

constexpr char kCapture[] = "CAPTURE";  // as other types of values, what a shell completes

inline std::vector<std::pair<std::string, TreeMode>> Modes() {
  return {{"merge", TreeMode::kCpuAndGpu}, {"gpu", TreeMode::kGpu},
          {"cpu", TreeMode::kCpu},         {"idle", TreeMode::kIdle},
          {"probe", TreeMode::kProbe},     {"off", TreeMode::kOff},
          {"wall", TreeMode::kWall},       {"critical", TreeMode::kCritical},
          {"memory", TreeMode::kMemory}};
}

inline std::vector<std::pair<std::string, MemoryView>> MemoryViews() {
  return {
      {"peak", MemoryView::kPeak}, {"growth", MemoryView::kGrowth}, {"left", MemoryView::kLeft}};
}

std::string NotEmpty(const std::string& text) { return text.empty() ? "is empty" : ""; }

class Parser {
 public:
  Result<std::variant<ReportOptions, Help>> Parse(int argc, const char* const* argv);
  std::vector<CommandLineOption> Options() {
    AddOptions();
    return WithHelpGroups(CommandLineOptionsOf(app_), HelpGroups());
  }

 private:
  void AddOptions();
  void AddViews();
  CLI::Option* AddView(const std::string& name, const View& view);
  void AddFilters();
  void AddChoices();
  void AddFlags();
  void AddSymbols();
  // One of `choices`, a list of names and values.
  template <typename Value, typename Choices>
  CLI::Option* AddChoice(const std::string& name, Value& value, Choices choices);
  // Returns what `parse` makes of the text.
  template <typename Value>
  CLI::Option* AddParsed(const std::string& name, Value& value,
                         Result<Value> (*parse)(std::string_view));
  CLI::Option* AddNumber(const std::string& name, uint64_t& value, std::string_view what);
  template <typename Value>
  Value Accepted(const std::string& name, Result<Value> parsed);
  template <typename Which>
  void Only(Which which, CLI::Option* option) {
    choice_.Only(which, option);
  }
  Status Check();
  Status CheckSample();
  Status TakeBy();
  Status CheckSlowSteps() const;
  Status CheckSymbols() const;
  Status CheckImport() const;
  void TakeFormatOfName();

  CLI::App app_{"", "xpu-report"};
  ReportOptions options_;
  ViewChoice choice_;
  CLI::Option* version_ = nullptr;
  CLI::Option* list_tables_ = nullptr;
  CLI::Option* sample_ = nullptr;
  CLI::Option* slow_steps_ = nullptr;
  CLI::Option* rows_ = nullptr;
  CLI::Option* format_ = nullptr;
  CLI::Option* kernel_names_ = nullptr;
  CLI::Option* memory_ = nullptr;
  std::string by_;    // of --by
  std::string hint_;  // of the value that was refused: CLI11's errors have no room for it
};

void Parser::AddOptions() {
  app_.set_help_flag("-h,--help");
  version_ = app_.add_flag("--version");
  list_tables_ = app_.add_flag("--list-tables");
  app_.add_flag("--strict", options_.strict);
  app_.add_flag("!--no-pager", options_.pager);
  app_.add_option("-o,--output", options_.output)->type_name("FILE")->check(NotEmpty);
  // Also as perf report has it.
  app_.add_option("-i,capture", options_.captures)->type_name(kCapture);
  AddViews();
  AddFilters();
  AddChoices();
  AddFlags();
  AddSymbols();
}

void Parser::AddViews() {
  for (const View& view : Views()) {
    if (view.option.empty()) continue;
    const std::string name(view.option);
    choice_.Add(AddView(name, view), view);
  }
  CLI::Option* import = AddChoice("--import", options_.import_format,
                                  Choices<ImportFormat>{{"cupti-text", ImportFormat::kCuptiText}});
  choice_.Add(import, Task::kImport);
}

CLI::Option* Parser::AddView(const std::string& name, const View& view) {
  if (!view.values.empty()) {
    Choices<std::string> choices;
    for (const std::string_view value : view.values) choices.emplace_back(value, value);
    return AddChoice(name, options_.value, choices);
  }
  if (!view.value.empty()) {
    return app_.add_option(name, options_.value)->type_name("REGEX")->check(CheckPattern);
  }
  if (view.other_capture.empty()) return app_.add_flag(name);
  return app_.add_option(name, options_.other_captures)
      ->type_name(kCapture)
      ->check(NotEmpty)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Parser::AddFilters() {
  FilterOptions& filter = options_.filter;
  // One value each time it is given: CLI11 would take the capture for a second one.
  const auto list = [this](const std::string& name, std::string_view what, auto add) {
    CLI::Option* option = app_.add_option_function<std::vector<std::string>>(
        name, [this, name, what, add](const std::vector<std::string>& items) {
          for (const std::string& text : items) {
            for (const std::string_view item : SplitAtCommas(text)) {
              if (add(item)) continue;
              if (name == "--device") hint_ = "GPUs are numbered from 0: --device 0";
              throw CLI::ValidationError(name, Format("'{}' is not {}", item, what));
            }
          }
        });
    option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    Only(&View::takes_filters, option);
  };
  const auto numbers = [&list](const std::string& name, std::vector<uint32_t>& values) {
    list(name, "a number", [&values](std::string_view item) {
      const auto number = ParseNumber<uint32_t>(item);
      if (number) values.push_back(*number);
      return number.has_value();
    });
  };
  const auto names = [&list](const std::string& name, std::vector<std::string>& values) {
    list(name, "a name", [&values](std::string_view item) {
      values.emplace_back(item);
      return !item.empty();
    });
  };
  numbers("--pid", filter.pids);
  numbers("--tid", filter.tids);
  numbers("--rank", filter.ranks);
  names("--host", filter.hosts);
  names("--container", filter.containers);
  numbers("--device", filter.devices);
  numbers("--stream", filter.streams);
  names("--comm", filter.comms);
  Only(&View::takes_filters, app_.add_option("--kernel", filter.kernel)->check(NotEmpty));
  Only(&View::takes_filters, app_.add_option("--api", filter.api)->check(NotEmpty));
  Only(&View::takes_filters, app_.add_option("--nvtx", filter.nvtx)->check(NotEmpty));
  Only(&View::takes_filters, app_.add_option("--event", options_.event)->check(NotEmpty));
  CLI::Option* time =
      app_.add_option_function<std::string>("--time", [this, &filter](const std::string& text) {
        filter.time = Accepted("--time", ParseTimeRange(text));
        filter.time_text = text;
      });
  Only(&View::takes_filters, time);
  CLI::Option* correlate = AddParsed("--correlate", options_.correlate, ParseCorrelate);
  Only(&View::takes_filters, correlate->type_name("{auto,id,nesting,time}"));
  sample_ = AddParsed("--sample", options_.sample_rate, ParseSampleRate);
  Only(&View::takes_sample, sample_);
}

void Parser::AddSymbols() {
  SymbolPlaces& symbols = options_.symbols;
  const auto flag = [this](const std::string& name, bool& value) {
    app_.add_flag(name, value)->disable_flag_override();  // no --lines=3
  };
  flag("--inline", symbols.inlines);
  flag("--lines", symbols.frames.lines);
  flag("--offsets", symbols.frames.offsets);
  flag("--debuginfod", symbols.debuginfod);
  AddChoice("--python", symbols.python,
            Choices<PythonView>{{"merge", PythonView::kMerge},
                                {"only", PythonView::kOnly},
                                {"native", PythonView::kNative}});
  app_.add_option("--symfs", symbols.symfs)->check(CLI::ExistingDirectory);
  // One value each time it is given: CLI11 would take the capture for a second directory.
  app_.add_option("--debug-dir", symbols.debug_directories)
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* to_directory = app_.add_option("--export-symbols", symbols.export_directory);
  choice_.Add(to_directory->type_name("DIR")->check(NotEmpty), Task::kExportSymbols);
  choice_.Add(app_.add_flag("--embed-symbols"), Task::kEmbedSymbols);
}

// CLI11's transformers are not used: their messages list numbers of our enums.
template <typename Value, typename Choices>
CLI::Option* Parser::AddChoice(const std::string& name, Value& value, Choices choices) {
  CLI::Option* option =
      app_.add_option_function<std::string>(name, [&value, choices, name](const std::string& text) {
        std::string names;
        for (const auto& [key, choice] : choices) {
          if (key == text) {
            value = choice;
            return;
          }
          names += (names.empty() ? "" : ", ") + key;
        }
        throw CLI::ValidationError(name, Format("'{}' is not one of {}", text, names));
      });
  return option->type_name(CLI::IsMember(choices).get_description());
}

template <typename Value>
Value Parser::Accepted(const std::string& name, Result<Value> parsed) {
  if (parsed.ok()) return *std::move(parsed);
  hint_ = parsed.error().hint;
  throw CLI::ValidationError(name, parsed.error().message);
}

template <typename Value>
CLI::Option* Parser::AddParsed(const std::string& name, Value& value,
                               Result<Value> (*parse)(std::string_view)) {
  return app_.add_option_function<std::string>(
      name, [this, &value, parse, name](const std::string& text) {
        value = Accepted(name, parse(text));
      });
}

CLI::Option* Parser::AddNumber(const std::string& name, uint64_t& value, std::string_view what) {
  return app_.add_option_function<std::string>(name, [&value, name, what](const std::string& text) {
    // CLI11 2.1 takes "-1" for a very large number, so the text is parsed here.
    const auto number = ParseNumber<uint64_t>(text);
    if (!number) {
      throw CLI::ValidationError(name.substr(name.find("--")),
                                 Format("'{}' is not a valid number of {}", text, what));
    }
    value = *number;
  });
}

void Parser::AddChoices() {
  kernel_names_ = AddChoice("--kernel-names", options_.tree.kernel_names,
                            Choices<KernelNames>{{"full", KernelNames::kFull},
                                                 {"short", KernelNames::kShort},
                                                 {"mangled", KernelNames::kMangled},
                                                 {"demangled", KernelNames::kFull}});
  AddChoice("--graph-stacks", options_.tree.paths.graph_stacks,
            Choices<GraphStacks>{{"both", GraphStacks::kBoth},
                                 {"launch", GraphStacks::kLaunch},
                                 {"creation", GraphStacks::kCreation}});
  Only(&View::shows_paths, AddChoice("--mode", options_.tree.mode, Modes()));
  memory_ = AddChoice("--memory", options_.tree.memory, MemoryViews());
  Only(&View::shows_paths, memory_);
  Choices<std::string> by;
  for (const auto& [name, group] : kGroups) by.emplace_back(name, name);
  for (const auto& [name, table] : kDiffTables) by.emplace_back(name, name);
  AddChoice("--by", by_, by);
  Only("--folded", AddChoice("--unit", options_.unit,
                             Choices<TimeUnit>{{"us", TimeUnit::kMicroseconds},
                                               {"ns", TimeUnit::kNanoseconds},
                                               {"samples", TimeUnit::kSamples}}));
  format_ = AddChoice("--format", options_.format,
                      Choices<TableFormat>{{"table", TableFormat::kTable},
                                           {"csv", TableFormat::kCsv},
                                           {"json", TableFormat::kJson}});
  Only(&View::shows_tables, format_);
}

void Parser::AddFlags() {
  Only(&View::shows_paths,
       app_.add_flag("--keep-internal-frames", options_.tree.paths.keep_internal_frames));
  Only(&View::shows_paths, app_.add_flag("--nvtx-frames", options_.tree.nvtx_frames));
  Only(&View::shows_paths, app_.add_flag("--device-tags", options_.tree.device_tags));
  Only("--folded", app_.add_flag("--reverse", options_.reverse));
  Only("--export", app_.add_flag("--each", options_.each));
  Only("--flamegraph", app_.add_option("--title", options_.title));
  Only(&View::shows_slices, AddNumber("--max-events", options_.max_events, "events"));
  CLI::Option* step =
      app_.add_option_function<std::string>("--step", [this](const std::string& text) {
        options_.steps.definition = Accepted("--step", ParseStepDefinition(text));
        options_.filter.step_text = text;
      });
  Only(&View::takes_filters, step->type_name("WHAT"));
  CLI::Option* range =
      app_.add_option_function<std::string>("--step-range", [this](const std::string& text) {
        options_.steps.range = Accepted("--step-range", ParseStepRange(text));
        options_.filter.steps_text = text;
      });
  Only(&View::takes_filters, range);
  CLI::Option* what_if = app_.add_option_function<std::vector<std::string>>(
      "--what-if", [this](const std::vector<std::string>& changes) {
        for (const std::string& text : changes) {
          options_.speedups.push_back(Accepted("--what-if", ParseSpeedup(text)));
        }
      });
  what_if->type_name("WHAT=FACTOR")->allow_extra_args(false);
  Only("--top", what_if->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
  slow_steps_ = app_.add_flag("--slow-steps", options_.slow_steps);
  Only(&View::compares_steps, slow_steps_);
  rows_ = AddNumber("-n,--rows", options_.rows, "rows");
  Only(&View::shows_tables, rows_);
  CLI::Option* table = app_.add_option("--table", options_.table);
  const std::vector<std::string_view> names = TopTableNames();
  table->type_name(
      CLI::IsMember(std::vector<std::string>(names.begin(), names.end())).get_description());
  Only(&View::shows_tables, table);
  Only("--top", app_.add_option("--sort", options_.sort)->check(NotEmpty));
}

Status Parser::CheckSymbols() const {
  const bool on_symbols =
      options_.task == Task::kExportSymbols || options_.task == Task::kEmbedSymbols;
  if (on_symbols && options_.captures.size() > 1) {
    return UsageError("--export-symbols and --embed-symbols take one capture at a time");
  }
  if (options_.task == Task::kExportSymbols && !options_.output.empty()) {
    return UsageError(
        "--export-symbols writes to its own directory and cannot be combined with -o");
  }
  const bool is_stream = options_.captures.front() == "-" || options_.output == "-";
  if (options_.task == Task::kEmbedSymbols && is_stream) {
    return UsageError("--embed-symbols needs files, not standard input or output");
  }
  return Ok();
}

Status Parser::CheckImport() const {
  if (options_.task != Task::kImport) return Ok();
  if (app_.count("capture") != 1) return UsageError("--import needs the name of one file");
  if (options_.output.empty() || options_.output == "-") {
    return UsageError("--import needs -o FILE, the capture to write");
  }
  return Ok();
}

Status Parser::CheckSample() {
  const bool needs_all = options_.tree.mode != TreeMode::kCpuAndGpu &&
                         options_.tree.mode != TreeMode::kGpu &&
                         options_.tree.mode != TreeMode::kCpu;
  if (sample_->count() > 0 && needs_all) {
    return UsageError(
        "--sample cannot be combined with --mode idle, off, wall, probe, critical or memory: they "
        "need every event");
  }
  return Ok();
}

Status Parser::TakeBy() {
  if (by_.empty()) return Ok();
  const auto is_it = [this](const auto& choice) { return choice.first == by_; };
  const auto* group = std::find_if(std::begin(kGroups), std::end(kGroups), is_it);
  if (group != std::end(kGroups)) {
    options_.tree.by = group->second;
    if (options_.view->shows_paths) return Ok();
    return UsageError(Format("--by {} needs --folded or --flamegraph", by_));
  }
  if (options_.view->other_capture.empty()) return UsageError(Format("--by {} needs --diff", by_));
  options_.per_step = by_ == "step";
  if (options_.per_step) return Ok();
  if (!options_.table.empty()) return UsageError("--by and --table: one of them is enough");
  options_.table = std::find_if(std::begin(kDiffTables), std::end(kDiffTables), is_it)->second;
  return Ok();
}

Status Parser::CheckSlowSteps() const {
  if (!options_.slow_steps) return Ok();
  if (options_.steps.range || sample_->count() > 0) {
    return UsageError("--slow-steps cannot be combined with --step-range or --sample");
  }
  const bool is_path = options_.tree.mode == TreeMode::kCritical ||
                       options_.tree.mode == TreeMode::kProbe ||
                       options_.tree.mode == TreeMode::kMemory;
  if (is_path || options_.unit == TimeUnit::kSamples) {
    return UsageError(
        "--slow-steps cannot be combined with --mode critical, memory, probe or --unit samples");
  }
  return Ok();
}

// Text in a file called tables.csv would be a surprise.
void Parser::TakeFormatOfName() {
  if (format_->count() > 0 || !options_.view->shows_tables) return;
  std::string_view name = options_.output;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".csv")) options_.format = TableFormat::kCsv;
  if (name.ends_with(".json")) options_.format = TableFormat::kJson;
}

Status Parser::Check() {
  if (std::string wrong = choice_.Take(options_); !wrong.empty()) {
    return UsageError(std::move(wrong));
  }
  XPU_RETURN_IF_ERROR(CheckSample());
  if (memory_->count() > 0 && options_.tree.mode != TreeMode::kMemory) {
    return UsageError("--memory needs --mode memory");
  }
  // A table that is asked for is all that is printed.
  if (!options_.speedups.empty() && options_.table.empty()) options_.table = "what_if";
  XPU_RETURN_IF_ERROR(TakeBy());
  XPU_RETURN_IF_ERROR(CheckSlowSteps());
  const bool compares = !options_.view->other_capture.empty() || options_.slow_steps;
  XPU_RETURN_IF_ERROR(CheckTopOptions(options_, compares));
  XPU_RETURN_IF_ERROR(CheckImport());
  const bool is_stream = options_.output.empty() || options_.output == "-";
  if (options_.task == Task::kView && options_.view->write_to != nullptr && is_stream) {
    return UsageError(Format("{} needs -o, the file or directory to write", options_.view->option));
  }
  TakeFormatOfName();
  // A table that a person reads has a screen's rows; a script reads all.
  if (rows_->count() == 0 && options_.format != TableFormat::kTable) options_.rows = 0;
  options_.kernel_names_are_given = kernel_names_->count() > 0;
  return CheckSymbols();
}

Result<std::variant<ReportOptions, Help>> Parser::Parse(int argc, const char* const* argv) {
  AddOptions();
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    XPU_ASSIGN_OR_RETURN(std::string text, HelpOn(HelpTopic(argc, argv), HelpText(), HelpGroups()));
    return std::variant<ReportOptions, Help>(Help{std::move(text)});
  } catch (const CLI::ExtrasError&) {
    return UnknownOption(app_, app_.remaining().front(), kSeeHelp, kOtherToolOptions);
  } catch (const CLI::ParseError& error) {
    return ParseMistake(app_, error.what(), hint_.empty() ? kSeeHelp : hint_);
  }
  using Parsed = std::variant<ReportOptions, Help>;
  if (version_->count() > 0) return Parsed(Help{ReportVersionText()});
  if (list_tables_->count() > 0) return Parsed(Help{TopTableList()});
  XPU_RETURN_IF_ERROR(Check());
  return std::variant<ReportOptions, Help>(std::move(options_));
}

}  // namespace

Result<std::variant<ReportOptions, Help>> ParseOptions(int argc, const char* const* argv) {
  return Parser().Parse(argc, argv);
}

std::vector<CommandLineOption> ReportCommandLineOptions() { return Parser().Options(); }

}  // namespace xpu
