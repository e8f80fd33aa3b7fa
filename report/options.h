// The command line of xpu-report.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "format/base/command_line_option.h"
#include "format/base/result.h"
#include "report/correlate/match.h"
#include "report/select/filter.h"
#include "report/view.h"
#include "report/views.h"

namespace xpu {

// What is done with the capture.
enum class Task : uint8_t {
  kView,
  // Not of what happened, but of the capture's symbols.
  kExportSymbols,
  kEmbedSymbols,
  kImport,  // makes a capture
};

// What --import reads.
enum class ImportFormat : uint8_t { kCuptiText };

// Where names and lines come from, and what frames show.
struct SymbolPlaces {
  std::string symfs;
  std::vector<std::string> debug_folders;  // none: the system's
  bool debuginfod = false;
  bool inlines = false;
  FramePlaces frames;
  PythonView python = PythonView::kMerge;
  std::string export_folder;
};

struct ReportOptions {
  std::vector<std::string> captures = {"capture.xpu"};  // more than one: merged
  std::string other_capture;                            // of View::other_capture
  std::string output;                                   // empty: standard output
  Task task = Task::kView;
  const View* view = &FindView("");
  ImportFormat import_format = ImportFormat::kCuptiText;
  bool pager = true;  // for what a terminal gets and does not fit
  FilterOptions filter;
  CorrelateOptions correlate;
  uint64_t sample_rate = 1;  // one of so many events
  std::string event;  // whose CPU samples are shown; empty: the clock's, else the first one's
  KernelNames kernel_names = KernelNames::kFull;
  GraphStacks graph_stacks = GraphStacks::kBoth;
  bool strict = false;  // data that was lost is an error
  SymbolPlaces symbols;
  FoldedOptions folded;
  FlameGraphOptions flame_graph;
  TraceOptions trace;
  TopOptions top;
};

// --help and --version: the text to print instead of a report.
struct Help {
  std::string text;
};

Result<std::variant<ReportOptions, Help>> ParseOptions(int argc, const char* const* argv);

std::vector<CommandLineOption> ReportCommandLineOptions();

}  // namespace xpu
