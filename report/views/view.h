// A view of a capture: what xpu-report can write, and what its command line has to know about it.
// Each view is described at the end of its own NAME_view.cpp; cli/report_options.cpp lists them.
//
// A view is a pure function of an analysis and options: it writes text to an output, changes
// nothing, and never touches the kernel or a process. So each is tested by exact text, without a
// GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/analysis/gpu_names.h"
#include "report/base/output.h"
#include "report/critical_path/critical_options.h"
#include "report/query/call_tree_builder.h"
#include "report/workload/slow_steps.h"
#include "report/workload/step_selection.h"

namespace xpu {

enum class TimeUnit : uint8_t { kMicroseconds, kNanoseconds, kSamples };
enum class TableFormat : uint8_t { kTable, kCsv, kJson };

// Options of the command line that views know. Each view reads those that it has.
struct ViewOptions {
  FilterOptions filter = {};
  // Several are merged; "-" is standard input.
  std::vector<std::string> captures = {"capture.xpu"};
  StepOptions steps = {};
  uint64_t sample_rate = 1;  // one of so many events
  // How stacks are made; the names of kernels and the stacks of graphs in all views.
  TreeOptions tree = {};
  bool kernel_names_are_given = false;
  std::string value = {};  // of View::value

  // --folded
  TimeUnit unit = TimeUnit::kMicroseconds;
  bool reverse = false;  // innermost frame first
  // --flamegraph
  std::string title = {};  // empty: the command line of the recording
  // --perfetto, --chrome-trace
  uint64_t max_events = 0;  // 0: no limit
  // --top, --diff
  uint64_t rows = 20;  // of each table, 0: all; of CSV and JSON all when none are asked for
  TableFormat format = TableFormat::kTable;
  std::string table = {};  // only this one, empty: all
  std::string sort = {};   // by this column, largest first; empty: as the table comes
  std::vector<Speedup> speedups = {};
  bool per_step = false;  // --diff --by step

  // Names of kernels in tables: of a screen's width where a person reads them.
  KernelNames TableKernelNames() const {
    const bool are_short = !kernel_names_are_given && format == TableFormat::kTable;
    return are_short ? KernelNames::kShort : tree.kernel_names;
  }
  // Names in the call paths of tables, where kernels are the last of many frames.
  KernelNames PathKernelNames() const {
    return kernel_names_are_given ? tree.kernel_names : KernelNames::kShort;
  }
};

// Writes what was recorded, the ledger, the top of each table; within 80 columns.
void WriteSummary(Analysis& analysis, const ViewOptions& options, Output& output);
// One line `frame;frame;... value` per path, sorted. `notes` gets a sentence about the paths whose
// time rounds to 0 and which are left out.
void WriteFolded(Analysis& analysis, const ViewOptions& options, Output& output,
                 std::string& notes);
// Why a view of stacks shows none: a sentence and which mode shows something, for standard error.
// Empty when the capture is.
std::string WhyNoStacks(const Analysis& analysis, TreeMode mode);
// One HTML file that needs nothing else.
void WriteFlameGraph(Analysis& analysis, const ViewOptions& options, Output& output,
                     std::string& notes);
// Trace Event Format, for Perfetto and chrome://tracing. `notes` gets a sentence when
// options.max_events cut it.
void WriteChromeTrace(Analysis& analysis, const ViewOptions& options, Output& output,
                      std::string& notes);
// Perfetto's own format, with the stacks of CPU samples; `notes` as above.
void WritePerfetto(Analysis& analysis, const ViewOptions& options, Output& output,
                   std::string& notes);
// `notes`, if given, gets what of the options had no effect.
void WriteTop(Analysis& analysis, const ViewOptions& options, Output& output,
              std::string* notes = nullptr);
// The views of slow steps, beside median ones (--slow-steps).
void WriteSlowStepsFolded(const SlowSteps& steps, Analysis& slow, Analysis& median,
                          const ViewOptions& options, Output& output, std::string& notes);
void WriteSlowStepsFlameGraph(const SlowSteps& steps, Analysis& slow, Analysis& median,
                              const ViewOptions& options, Output& output, std::string& notes);
// Time by call path, or the table that is asked for.
void WriteSlowStepsTable(const SlowSteps& steps, Analysis& slow, Analysis& median,
                         const ViewOptions& options, Output& output, std::string& notes);
// The captures that --diff compares. Several captures on a side are runs of the same.
struct DiffCapture {
  Analysis* analysis = nullptr;
  std::vector<StepSeries> steps = {};  // of --by step: those after the warm-up
};
struct DiffCaptures {
  std::vector<DiffCapture> before;
  std::vector<DiffCapture> after;
};
// The tables of captures side by side, what became slower first.
void WriteDiff(const DiffCaptures& captures, const ViewOptions& options, Output& output,
               std::string& notes);
// One line for each event, in order of time.
void WriteScript(Analysis& analysis, const ViewOptions& options, Output& output);
// Every record as one line of text.
void WriteDump(const Analysis& analysis, Output& output);

struct ViewInput {
  const ViewOptions& options;
  Analysis& analysis;
  Output& output;
  std::string& notes;  // for standard error: sentences that end their lines
  // `analysis` shows slow steps, and `median_steps` the others; nullptr: there is no --slow-steps.
  const SlowSteps* slow_steps = nullptr;
  Analysis* median_steps = nullptr;
  DiffCaptures compared = {};  // by a view that compares captures
};

struct View {
  // Which CPU samples, where a capture has those of several events and none is asked for.
  enum class Events : uint8_t { kOne, kOneClockAndMoments, kAll };

  std::string_view option = {};  // "--folded"; empty: shown when no view is asked for
  std::string_view help = {};    // its line of --help, within 56 columns
  // Its option's value as --help calls it: a capture to compare with. Empty: it takes none.
  std::string_view other_capture = {};
  // The placeholder of a word that is one of `values`: ViewOptions::value.
  std::string_view value = {};
  std::span<const std::string_view> values = {};

  bool takes_filters = true;    // --pid, --time and what else shows a part of a capture
  bool takes_sample = false;    // --sample
  bool shows_slices = false;    // --max-events
  bool compares_steps = false;  // --slow-steps
  bool shows_paths = false;     // --mode, --by and what else says what a stack is
  bool shows_tables = false;    // --format, --rows, --table
  bool is_for_reading = true;   // a terminal gets it by the page
  bool shows_lines = false;     // of calls, though no --lines asks for them
  // How the names of files of its format end, where others would mistake one: ".html".
  std::string_view file_name_end = {};
  bool has_ledger = false;  // prints the ledger itself
  Events events = Events::kOne;

  // Writes the view to one stream, or to the file or directory that -o names and that is more than
  // a stream.
  void (*write)(const ViewInput& input) = nullptr;
  Status (*write_to)(const ViewOptions& options, Analysis& analysis,
                     const std::string& path) = nullptr;
};

}  // namespace xpu
