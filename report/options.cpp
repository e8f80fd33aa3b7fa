#include "report/options.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "format/base/text.h"
#include "report/top_tables.h"

namespace xpu {
namespace {

// CLI11's own help lists types and groups in more lines than a screen has.
constexpr std::string_view kHelp =
    R"(Usage: xpu-report [OPTIONS] [CAPTURE]
Shows what xpu-record has recorded. CAPTURE is capture.xpu unless given.

Views (one; none: a summary)
  --folded              folded stacks, for flamegraph.pl, inferno, speedscope
  --chrome-trace        JSON for Perfetto and chrome://tracing
  --top                 tables of kernels, copies, API calls, functions, paths
  --dump                every record of the capture as text

Options
  -o, --output FILE     write to FILE, compressed when it ends in .gz
  --kernel-names WHICH  full (default), short or mangled
  --graph-stacks WHICH  work of graphs under launch, creation or both (default)
  --strict              exit with status 3 when data was lost
  -h, --help, --version

Symbols
  --inline, --lines, --offsets  show inlined functions, file:line, +0x12
  --symfs DIR           look for the recorded machine's files below DIR
  --debug-dir DIR       look for debug files in DIR (default /usr/lib/debug)
  --debuginfod          ask debuginfod for what is not here
  --export-symbols DIR  only write the symbols in the capture as a build-id tree
  --embed-symbols       only add symbols of files that are here to the capture

Options of --folded
  --mode MODE           merge (default: CPU samples and GPU time), gpu, cpu
  --unit UNIT           us (default), ns, samples
  --device-tags         name the GPU: [GPU0_Kernel]name
  --keep-internal-frames  keep the frames of CUDA and xpu in launch stacks

Options of --top
  -n, --rows N          rows of each table (default 20, 0: all)
  --format FORMAT       table (default), csv, json
  --table NAME          only this table, for instance cuda_gpu_kern_sum

More in xpu-report(1).
)";

std::string Joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

Error UsageError(std::string message) {
  return Error{ErrorKind::kUsage, std::move(message), "xpu-report --help lists the options"};
}

std::string NotEmpty(const std::string& text) { return text.empty() ? "is empty" : ""; }

class Parser {
 public:
  Result<std::variant<ReportOptions, Help>> Parse(int argc, const char* const* argv);

 private:
  void AddOptions();
  void AddChoices();
  void AddSymbols();
  Status Check();
  Status CheckSymbols() const;

  CLI::App app_{"", "xpu-report"};
  ReportOptions options_;
  std::map<View, CLI::Option*> views_;
  CLI::Option* version_ = nullptr;
  std::vector<std::pair<CLI::Option*, View>> only_with_;
};

void Parser::AddOptions() {
  app_.set_help_flag("-h,--help");
  version_ = app_.add_flag("--version");
  views_[View::kFolded] = app_.add_flag("--folded");
  views_[View::kChromeTrace] = app_.add_flag("--chrome-trace");
  views_[View::kTop] = app_.add_flag("--top");
  views_[View::kDump] = app_.add_flag("--dump");
  app_.add_flag("--strict", options_.strict);
  app_.add_option("-o,--output", options_.output)->check(NotEmpty);
  app_.add_option("capture", options_.capture);
  AddChoices();
  AddSymbols();
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
  app_.add_option("--symfs", symbols.symfs)->check(CLI::ExistingDirectory);
  // One value each time it is given: CLI11 would take the capture for a second folder.
  app_.add_option("--debug-dir", symbols.debug_folders)
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  views_[View::kExportSymbols] = app_.add_option("--export-symbols", symbols.export_folder);
  views_[View::kExportSymbols]->check(NotEmpty);
  views_[View::kEmbedSymbols] = app_.add_flag("--embed-symbols");
}

void Parser::AddChoices() {
  // By hand instead of with CLI11's transformers: their messages list numbers of our enums.
  const auto add = [&](const std::string& name, View view, auto& value, auto choices) {
    CLI::Option* option = app_.add_option_function<std::string>(
        name, [&value, choices, name](const std::string& text) {
          std::string names;
          for (const auto& [key, choice] : choices) {
            if (key == text) {
              value = choice;
              return;
            }
            names += (names.empty() ? "" : ", ") + key;
          }
          throw CLI::ValidationError(name, Format("'{}' is none of {}", text, names));
        });
    if (view != View::kSummary) only_with_.emplace_back(option, view);
  };
  using Names = std::vector<std::pair<std::string, KernelNames>>;
  using Stacks = std::vector<std::pair<std::string, GraphStacks>>;
  using Modes = std::vector<std::pair<std::string, MergeMode>>;
  using Units = std::vector<std::pair<std::string, TimeUnit>>;
  using Formats = std::vector<std::pair<std::string, TableFormat>>;
  add("--kernel-names", View::kSummary, options_.kernel_names,
      Names{{"full", KernelNames::kFull},
            {"short", KernelNames::kShort},
            {"mangled", KernelNames::kMangled},
            {"demangled", KernelNames::kFull}});
  add("--graph-stacks", View::kSummary, options_.graph_stacks,
      Stacks{{"both", GraphStacks::kBoth},
             {"launch", GraphStacks::kLaunch},
             {"creation", GraphStacks::kCreation}});
  add("--mode", View::kFolded, options_.folded.merge.mode,
      Modes{{"merge", MergeMode::kMerge}, {"gpu", MergeMode::kGpu}, {"cpu", MergeMode::kCpu}});
  add("--unit", View::kFolded, options_.folded.unit,
      Units{{"us", TimeUnit::kMicroseconds},
            {"ns", TimeUnit::kNanoseconds},
            {"samples", TimeUnit::kSamples}});
  add("--format", View::kTop, options_.top.format,
      Formats{{"table", TableFormat::kTable},
              {"csv", TableFormat::kCsv},
              {"json", TableFormat::kJson}});
  only_with_.emplace_back(
      app_.add_flag("--keep-internal-frames", options_.folded.merge.paths.keep_internal_frames),
      View::kFolded);
  only_with_.emplace_back(app_.add_flag("--device-tags", options_.folded.merge.device_tags),
                          View::kFolded);
  CLI::Option* rows =
      app_.add_option_function<std::string>("-n,--rows", [this](const std::string& text) {
        // CLI11 2.1 takes "-1" for a very large number.
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, options_.top.rows);
        if (error != std::errc() || stop != end) {
          throw CLI::ValidationError("--rows", Format("'{}' is not a number of rows", text));
        }
      });
  only_with_.emplace_back(rows, View::kTop);
  only_with_.emplace_back(app_.add_option("--table", options_.top.table), View::kTop);
}

Status Parser::CheckSymbols() const {
  if (options_.view == View::kExportSymbols && !options_.output.empty()) {
    return UsageError("--export-symbols writes to its own folder: no -o");
  }
  const bool is_stream = options_.capture == "-" || options_.output == "-";
  if (options_.view == View::kEmbedSymbols && is_stream) {
    return UsageError("--embed-symbols reads and writes files, no streams");
  }
  return Ok();
}

Status Parser::Check() {
  std::string first;
  for (const auto& [view, flag] : views_) {
    if (flag->count() == 0) continue;
    if (!first.empty()) {
      return UsageError(Format("{} and {}: one view a run", first, flag->get_name()));
    }
    first = flag->get_name();
    options_.view = view;
  }
  for (const auto& [option, view] : only_with_) {
    if (option->count() == 0 || options_.view == view) continue;
    return UsageError(
        Format("{} is an option of {}", option->get_name(), views_[view]->get_name()));
  }
  const std::vector<std::string_view> tables = TopTableNames();
  const std::string& table = options_.top.table;
  if (!table.empty() && std::find(tables.begin(), tables.end(), table) == tables.end()) {
    return UsageError(Format("--table: '{}' is none of {}", table, Joined(tables)));
  }
  options_.folded.merge.kernel_names = options_.kernel_names;
  options_.folded.merge.paths.graph_stacks = options_.graph_stacks;
  options_.top.kernel_names = options_.kernel_names;
  options_.top.graph_stacks = options_.graph_stacks;
  return CheckSymbols();
}

Result<std::variant<ReportOptions, Help>> Parser::Parse(int argc, const char* const* argv) {
  AddOptions();
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return std::variant<ReportOptions, Help>(Help{std::string(kHelp)});
  } catch (const CLI::ArgumentMismatch& error) {
    // "--mode: 1 required TEXT missing", "--mode: At most 1 required but received 2"
    const std::string text = error.what();
    return UsageError(text.substr(0, text.find(':')) +
                      (text.ends_with("missing") ? " needs a value" : " is given twice"));
  } catch (const CLI::ExtrasError& error) {
    const std::vector<std::string> rest = app_.remaining();
    if (rest.empty() || rest.front().starts_with("-")) return UsageError(error.what());
    return UsageError(Format("one capture at a time: unexpected {}", rest.front()));
  } catch (const CLI::ParseError& error) {
    return UsageError(error.what());
  }
  if (version_->count() > 0) {
    return std::variant<ReportOptions, Help>(Help{"xpu-report " XPU_VERSION "\n"});
  }
  XPU_RETURN_IF_ERROR(Check());
  return std::variant<ReportOptions, Help>(std::move(options_));
}

}  // namespace

Result<std::variant<ReportOptions, Help>> ParseOptions(int argc, const char* const* argv) {
  return Parser().Parse(argc, argv);
}

}  // namespace xpu
