#include "report/top_tables.h"

#include <algorithm>

#include "format/base/text.h"
#include "report/merge.h"
#include "report/statistics.h"

namespace xpu {
namespace {

constexpr std::string_view kKernels = "cuda_gpu_kern_sum";
constexpr std::string_view kGraphs = "cuda_gpu_graph_sum";
constexpr std::string_view kCopyTimes = "cuda_gpu_mem_time_sum";
constexpr std::string_view kCopySizes = "cuda_gpu_mem_size_sum";
constexpr std::string_view kApis = "cuda_api_sum";
constexpr std::string_view kOverheads = "cuda_overhead_sum";
constexpr std::string_view kFunctions = "cpu_func_sum";
constexpr std::string_view kPaths = "callpath_sum";

std::string Percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "0.0";
  return Format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Mega(double bytes) { return Format("{:.3f}", bytes / 1e6); }

size_t RowsShown(const TopOptions& options, size_t rows) {
  return options.rows == 0 ? rows : std::min<size_t>(options.rows, rows);
}

// `count_column` and `name_column` are what nsys calls them in this table.
Table TimeTable(std::string_view name, std::string title, std::string count_column,
                std::string name_column, const std::vector<Statistics>& statistics,
                const TopOptions& options) {
  Table table{std::string(name),
              std::move(title),
              {"Time (%)", "Total Time (ns)", std::move(count_column), "Avg (ns)", "Med (ns)",
               "Min (ns)", "Max (ns)", "StdDev (ns)", std::move(name_column)},
              8,
              {}};
  uint64_t whole = 0;
  for (const Statistics& row : statistics) whole = AddSaturated(whole, row.total);
  for (size_t i = 0; i < RowsShown(options, statistics.size()); ++i) {
    const Statistics& row = statistics[i];
    table.rows.push_back({Percent(row.total, whole), std::to_string(row.total),
                          std::to_string(row.count), Format("{:.1f}", row.average),
                          Format("{:.1f}", row.median), std::to_string(row.smallest),
                          std::to_string(row.largest), Format("{:.1f}", row.deviation), row.name});
  }
  return table;
}

Table SizeTable(const std::vector<Statistics>& statistics, const TopOptions& options) {
  Table table{std::string(kCopySizes),
              "CUDA GPU MemOps Summary (by Size)",
              {"Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)",
               "Operation"},
              7,
              {}};
  for (size_t i = 0; i < RowsShown(options, statistics.size()); ++i) {
    const Statistics& row = statistics[i];
    table.rows.push_back({Mega(static_cast<double>(row.total)), std::to_string(row.count),
                          Mega(row.average), Mega(row.median),
                          Mega(static_cast<double>(row.smallest)),
                          Mega(static_cast<double>(row.largest)), Mega(row.deviation), row.name});
  }
  return table;
}

Table FunctionTable(const CallTree& tree, const FrameTable& frames, const TopOptions& options) {
  Table table{std::string(kFunctions),
              "CPU Function Summary",
              {"Self (%)", "Self Time (ns)", "Total (%)", "Total Time (ns)", "Samples", "Module",
               "Function"},
              5,
              {}};
  const std::vector<FunctionTime> functions = FunctionTimes(tree, frames);
  uint64_t whole = 0;
  for (const FunctionTime& row : functions) whole = AddSaturated(whole, row.self_ns);
  for (size_t i = 0; i < RowsShown(options, functions.size()); ++i) {
    const FunctionTime& row = functions[i];
    table.rows.push_back({Percent(row.self_ns, whole), std::to_string(row.self_ns),
                          Percent(row.total_ns, whole), std::to_string(row.total_ns),
                          std::to_string(row.self_count), frames[row.frame].module,
                          frames[row.frame].Label()});
  }
  return table;
}

Table PathTable(const CallTree& tree, const FrameTable& frames, const TopOptions& options) {
  Table table{std::string(kPaths),
              "Call Path Summary (CPU Samples and GPU Time)",
              {"Time (%)", "Total Time (ns)", "Count", "Path"},
              3,
              {}};
  const std::vector<PathTime> paths = PathTimes(tree);
  uint64_t whole = 0;
  for (const PathTime& row : paths) whole = AddSaturated(whole, row.ns);
  for (size_t i = 0; i < RowsShown(options, paths.size()); ++i) {
    std::string path;
    for (const FrameId frame : tree.Path(paths[i].path)) {
      if (!path.empty()) path += " > ";
      path += frames[frame].Label();
    }
    table.rows.push_back({Percent(paths[i].ns, whole), std::to_string(paths[i].ns),
                          std::to_string(paths[i].count), std::move(path)});
  }
  return table;
}

}  // namespace

std::vector<std::string_view> TopTableNames() {
  return {kKernels, kGraphs, kCopyTimes, kCopySizes, kApis, kOverheads, kFunctions, kPaths};
}

std::vector<Table> TopTables(Analysis& analysis, const TopOptions& options) {
  std::vector<Table> tables;
  const auto wanted = [&](std::string_view name) {
    return options.table.empty() || options.table == name;
  };
  const GpuNames names(analysis, options.kernel_names);
  if (wanted(kKernels)) {
    tables.push_back(TimeTable(kKernels, "CUDA GPU Kernel Summary", "Instances", "Name",
                               KernelTimes(analysis, names), options));
  }
  if (wanted(kGraphs)) {
    tables.push_back(TimeTable(kGraphs, "CUDA Graph Replay Summary", "Instances", "Name",
                               GraphTimes(analysis, names), options));
  }
  if (wanted(kCopyTimes)) {
    tables.push_back(TimeTable(kCopyTimes, "CUDA GPU MemOps Summary (by Time)", "Count",
                               "Operation", CopyTimes(analysis), options));
  }
  if (wanted(kCopySizes)) tables.push_back(SizeTable(CopySizes(analysis), options));
  if (wanted(kApis)) {
    tables.push_back(
        TimeTable(kApis, "CUDA API Summary", "Num Calls", "Name", ApiTimes(analysis), options));
  }
  if (wanted(kOverheads)) {
    tables.push_back(TimeTable(kOverheads, "CUDA Overhead Summary", "Count", "Overhead",
                               OverheadTimes(analysis), options));
  }
  MergeOptions merge{.mode = MergeMode::kCpu,
                     .kernel_names = options.kernel_names,
                     .paths = {.graph_stacks = options.graph_stacks}};
  if (wanted(kFunctions)) {
    tables.push_back(FunctionTable(BuildCallTree(analysis, merge), analysis.frames, options));
  }
  merge.mode = MergeMode::kMerge;
  if (wanted(kPaths)) {
    tables.push_back(PathTable(BuildCallTree(analysis, merge), analysis.frames, options));
  }
  return tables;
}

}  // namespace xpu
