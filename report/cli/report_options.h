// The parsed command line of xpu-report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/stacks/frames.h"
#include "report/stacks/mixed_stacks.h"
#include "report/trace/match.h"
#include "report/views/view.h"
#include "report/workload/step_selection.h"

namespace xpu {

// In the order of --help; the first is the one without an option.
std::span<const View> Views();

// Returns the view of an option, which must exist.
const View& FindView(std::string_view option);

// The task of a run.
enum class Task : uint8_t {
  kView,
  // Tasks on the capture's symbols instead of a view.
  kExportSymbols,
  kEmbedSymbols,
  kImport,  // makes a capture
};

// Formats that --import reads.
enum class ImportFormat : uint8_t { kCuptiText };

// Where names and lines come from, and what frames show.
struct SymbolPlaces {
  std::string symfs;
  std::vector<std::string> debug_directories;  // none: the system's
  bool debuginfod = false;
  bool inlines = false;
  FramePlaces frames;
  PythonView python = PythonView::kMerge;
  std::string export_directory;
};

struct ReportOptions : ViewOptions {
  std::vector<std::string> other_captures;  // of View::other_capture
  std::string output;                       // empty: standard output
  bool each = false;                        // the tables of each capture on its own (run_each.cpp)
  Task task = Task::kView;
  const View* view = &FindView("");
  ImportFormat import_format = ImportFormat::kCuptiText;
  bool pager = true;  // for what a terminal gets and does not fit
  CorrelateOptions correlate;
  bool slow_steps = false;
  std::string event;    // whose CPU samples are shown; empty: the clock's, else the first one's
  bool strict = false;  // data that was lost is an error
  SymbolPlaces symbols;
};

}  // namespace xpu
