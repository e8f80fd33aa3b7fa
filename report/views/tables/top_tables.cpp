#include "report/views/tables/top_tables.h"

#include <algorithm>
#include <array>

#include "format/base/nearest_names.h"
#include "format/base/split.h"
#include "format/base/text.h"

namespace xpu {
namespace {

using Columns = std::vector<Column>;

// Whether a column holds ids, which users copy into filters or look up elsewhere.
bool IsId(std::string_view column) {
  constexpr std::string_view kIds[] = {"Pid", "PID",  "Tid",    "TID",   "DevId",
                                       "Ctx", "Strm", "CorrID", "Result"};
  return std::find(std::begin(kIds), std::end(kIds), column) != std::end(kIds);
}

Columns Numbers(std::initializer_list<std::string_view> names) {
  Columns columns;
  for (const std::string_view name : names) {
    columns.push_back({.name = std::string(name), .is_id = IsId(name)});
  }
  return columns;
}

Columns Texts(std::initializer_list<std::string_view> names) {
  Columns columns = Numbers(names);
  for (Column& column : columns) column.is_text = true;
  return columns;
}

Columns Details(std::initializer_list<std::string_view> names) {
  Columns columns = Texts(names);
  for (Column& column : columns) column.is_description = true;
  return columns;
}

Columns Keys(std::initializer_list<std::string_view> names) {
  Columns columns = Numbers(names);
  for (Column& column : columns) column.is_key_number = true;
  return columns;
}

Columns Path() { return {{.name = "Path", .is_text = true, .is_path = true}}; }

Columns Joined(std::initializer_list<Columns> parts) {
  Columns all;
  for (const Columns& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// `count` and `names` are what nsys calls them in this table.
Columns Times(std::string_view count, std::initializer_list<std::string_view> names) {
  return Joined({Numbers({"Time (%)", "Total Time (ns)", count, "Avg (ns)", "Med (ns)", "Min (ns)",
                          "Max (ns)", "StdDev (ns)"}),
                 Texts(names)});
}

Columns SizeColumns() {
  return Joined({Numbers({"Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)",
                          "StdDev (MB)"}),
                 Texts({"Operation"})});
}

// Columns of samples of GPU code. Stall: the reason of most of the row's samples.
Columns GpuLineColumns() {
  return Joined({Numbers({"Time (%)", "Total Time (ns)", "Samples", "Stall (%)"}),
                 Details({"Stall"}), Texts({"Line", "Function", "Kernel"})});
}

Columns GpuFunctionColumns() {
  return Joined({Numbers({"Self (%)", "Self Time (ns)", "Total (%)", "Total Time (ns)", "Samples",
                          "Stall (%)"}),
                 Details({"Stall"}), Texts({"Function", "Kernel"})});
}

Columns GpuStallColumns() {
  return Joined({Numbers({"Time (%)", "Total Time (ns)", "Samples", "Not Issued (%)"}),
                 Texts({"Stall"}), Details({"Meaning"})});
}

Columns ExecutionColumns() {
  Columns columns = Numbers({"PID", "TID", "DevId", "Count", "QCount"});
  for (const std::string_view phase : {"T", "A", "Q", "K"}) {
    for (const std::string_view value : {"Avg", "Med", "Min", "Max", "StdDev"}) {
      columns.push_back({Format("{}{} (ns)", phase, value)});
    }
  }
  return Joined({columns, Texts({"API Name", "Kernel Name"})});
}

Columns GpuTraceColumns() {
  return Joined({Numbers({"Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX",
                          "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)",
                          "Throughput (MB/s)"}),
                 Texts({"SrcMemKd", "DstMemKd", "Device"}), Numbers({"Ctx", "Strm"}),
                 Texts({"Name"})});
}

Columns ApiTraceColumns() {
  return Joined({Numbers({"Start (ns)", "Duration (ns)"}), Texts({"Name"}),
                 Numbers({"Result", "CorrID", "Pid", "Tid"}), Texts({"Thread Name"})});
}

Columns GapColumns() {
  return Joined({Numbers({"Start (ns)", "Duration (ns)", "Idle (%)", "DevId", "Pid", "Tid"}),
                 Texts({"Thread Name", "Before", "After", "API Name", "Line"}), Path()});
}

Columns UnfinishedColumns() {
  return Joined({Numbers({"Pending (ns)", "Operations"}), Texts({"State"}),
                 Numbers({"DevId", "Pid", "Tid", "Ctx", "Strm", "CorrId", "Result"}),
                 Texts({"GridXYZ", "BlockXYZ", "Name"}), Path()});
}

Columns MetricColumns() {
  return Joined({Keys({"DevId"}), Numbers({"Avg", "Max", "Peak (%)", "Samples"}),
                 Details({"Total"}), Texts({"Unit", "Metric", "Name"})});
}

Columns RangeKernelColumns() {
  return Joined({Texts({"NVTX Range", "Style"}),
                 Numbers({"PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Avg (ns)",
                          "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"}),
                 Texts({"Kernel Name"})});
}

// The times are of calls whose entry and return were both probed.
Columns ProbeColumns() {
  return Joined({Numbers({"Hits (%)", "Hits", "Calls", "Total Time (ns)", "Avg (ns)", "Min (ns)",
                          "Max (ns)"}),
                 Texts({"Probe"})});
}

// Idle: the GPU had nothing to do until a launch of the operator.
Columns OperatorColumns() {
  return Joined(
      {Numbers({"GPU Self (%)", "GPU Self Time (ns)", "GPU Total (%)", "GPU Total Time (ns)",
                "GPU Work", "Launches", "Launch Time (ns)", "Idle Before (ns)"}),
       Texts({"Pass"}), Details({"Libraries"}), Texts({"Operator"})});
}

// Calls: as far as launches show them.
Columns ModuleColumns() {
  return Joined(
      {Numbers({"GPU Total (%)", "GPU Total Time (ns)", "GPU Self (%)", "GPU Self Time (ns)",
                "GPU Work", "Launches", "Launch Time (ns)", "Calls"}),
       Details({"Called At"}), Texts({"Module"}), Path()});
}

Columns StepColumns() {
  return Joined(
      {Numbers({"Steps", "Warm-up", "Total Time (ns)", "Avg (ns)", "Med (ns)", "P90 (ns)",
                "P99 (ns)", "Min (ns)", "Max (ns)", "Busy (%)", "Busy Avg (ns)", "Idle Avg (ns)",
                "Kernels", "Graphs", "Memory Ops", "Bytes (MB)", "Pid", "Tid"}),
       Texts({"Steps Are"})});
}

Columns StepTraceColumns() {
  return Joined({Numbers({"Step", "Start (ns)", "Duration (ns)", "Busy (ns)", "Idle (ns)",
                          "Kernels", "Graphs", "Memory Ops", "Bytes (MB)", "Pid", "Tid"}),
                 Texts({"Launches"})});
}

Columns CriticalColumns() {
  return Joined({Times("Instances", {}), Numbers({"Per Step (ns)", "Assumed (ns)"}),
                 Texts({"Kind", "Thread", "What"}), Path()});
}

// Times of a step, or of all where there are no steps.
Columns WhatIfColumns() {
  return Joined({Numbers({"Factor", "On Path (%)", "Assumed (%)", "Measured (ns)", "Predicted (ns)",
                          "Shorter (%)", "At Most (%)"}),
                 Texts({"What"})});
}

// The driver's cache of code.
Columns JitColumns() {
  return Joined({Times("Count", {}), Numbers({"Cache (MB)"}), Texts({"Operation", "Code"})});
}

Columns FunctionColumns() {
  return Joined({Numbers({"Self (%)", "Self Time (ns)", "Total (%)", "Total Time (ns)", "Samples"}),
                 Texts({"Module", "Function"})});
}

Columns CostColumns() {
  return Joined(
      {Numbers({"GPU Self (%)", "GPU Self Time (ns)", "GPU Total (%)", "GPU Total Time (ns)",
                "CPU Self (%)", "CPU Self Time (ns)", "CPU Total (%)", "CPU Total Time (ns)"}),
       Texts({"Language", "Module", "Function"})});
}

Columns ThreadColumns() {
  return Joined({Numbers({"CPU (%)", "CPU Time (ns)", "Samples", "GPU (%)", "GPU Time (ns)",
                          "GPU Work", "Pid", "Tid"}),
                 Texts({"Process", "Thread"})});
}

Columns OffCpuColumns() {
  return Joined({Times("Instances", {}), Numbers({"Runnable (ns)"}), Texts({"Reason"}), Path()});
}

Columns WakeUpColumns() {
  return Joined({Times("Wake-ups", {"Waker", "Woken", "Reason"}), Path()});
}

Columns LockColumns() {
  return Joined({Numbers({"Time (%)", "Total Time (ns)", "Waits", "Avg (ns)", "Max (ns)", "Threads",
                          "Not Ended", "Pid"}),
                 Texts({"Lock", "Released By", "Held By"}), Path()});
}

constexpr std::string_view kTotal = "Total Time (ns)";

// Sizes are those of calls; bandwidths as nccl-tests defines them.
Columns CollectiveColumns() {
  return Joined(
      {Numbers({"Transfer Time (ns)", "Count", "Complete", "Ranks", "Bytes", "Avg (ns)", "Med (ns)",
                "Min (ns)", "Max (ns)", "AlgBW (GB/s)", "BusBW (GB/s)", "Waited (ns)"}),
       Texts({"Operation", "Reduction", "Communicator", "Matched By"})});
}

Columns CollectiveTraceColumns() {
  return Joined({Numbers({"Start (ns)", "Transfer Time (ns)", "Seq", "Arrived", "Ranks", "Bytes",
                          "AlgBW (GB/s)", "BusBW (GB/s)", "Skew (ns)", "Waited (ns)", "Last Rank"}),
                 Texts({"Operation", "Communicator", "Matched By", "Arrivals (rank:ns)"})});
}

Columns StragglerColumns() {
  return Joined({Numbers({"Waited (%)", "Waited (ns)", "Delay (ns)", "Max Delay (ns)", "Last Times",
                          "Rank", "DevId"}),
                 Texts({"Host", "Cause"}), Path()});
}

Columns OverlapColumns(std::string_view step) {
  return Joined({Numbers({"Rank", step, "Duration (ns)", "Communication (ns)", "Computation (ns)",
                          "Both (ns)", "Exposed (ns)", "Overlap (%)", "Exposed (%)"}),
                 Texts({"Host"})});
}

std::vector<TableKind> RankKinds() {
  return {
      {"collective_sum", "Collective Summary", "collectives by communicator, operation and size",
       CollectiveColumns(), FillCollectives, true, "Transfer Time (ns)", "Count"},
      {"collective_trace", "Collective Trace", "every collective, and when each rank arrived",
       CollectiveTraceColumns(), FillCollectiveTrace, true},
      {"rank_sum", "Rank Summary", "ranks: waiting and waited for, steps, exposed communication",
       Joined({Numbers({"Waited For (ns)", "Waiting (ns)", "Step Med (ns)", "GPU Busy (%)",
                        "Exposed (%)"}),
               Keys({"Rank"}), Numbers({"Pid"}), Texts({"Host"})}),
       FillRanks, true},
      {"straggler_sum", "Straggler Summary",
       "ranks that others waited for, by what they did meanwhile", StragglerColumns(),
       FillStragglers, true, "Waited (ns)", "Last Times"},
      {"comm_overlap_sum", "Communication Overlap Summary",
       "communication and computation by rank (--step)", OverlapColumns("Steps"), FillOverlap,
       true},
      {"comm_overlap_trace", "Communication Overlap Trace", "likewise, of every step",
       OverlapColumns("Step"), FillOverlapTrace, true},
      {"host_clock_sum", "Host Clock Summary", "how the clocks of several hosts were aligned",
       Joined({Numbers({"Captures", "Ahead (ns)", "Drift (ppm)", "Residual (ns)", "Collectives"}),
               Texts({"Host", "Aligned By"})}),
       FillHostClocks, true},
  };
}

std::vector<TableKind> GpuKinds() {
  return {
      {"cuda_gpu_kern_sum", "CUDA GPU Kernel Summary", "kernels by name",
       Times("Instances", {"Name"}), FillKernels, false, kTotal, "Instances"},
      {"cuda_gpu_kern_gb_sum", "CUDA GPU Kernel/Grid/Block Summary",
       "kernels by name, grid and block", Times("Instances", {"GridXYZ", "BlockXYZ", "Name"}),
       FillKernelShapes, true, kTotal, "Instances"},
      {"cuda_gpu_graph_sum", "CUDA Graph Replay Summary", "CUDA graph replays recorded as a whole",
       Times("Instances", {"Name"}), FillGraphs, false, kTotal, "Instances"},
      {"cuda_gpu_mem_time_sum", "CUDA GPU MemOps Summary (by Time)", "memory operations by time",
       Times("Count", {"Operation"}), FillCopyTimes, false, kTotal, "Count"},
      {"cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)", "memory operations by size",
       SizeColumns(), FillCopySizes, false, "Total (MB)", "Count"},
      {"gpu_line_sum", "GPU Line Summary", "source lines of kernels (--gpu-samples)",
       GpuLineColumns(), FillGpuLines, false, kTotal, "Samples"},
      {"gpu_function_sum", "GPU Function Summary", "functions in kernels (--gpu-samples)",
       GpuFunctionColumns(), FillGpuFunctions, true, "Self Time (ns)", "Samples"},
      {"gpu_stall_sum", "GPU Stall Summary", "what warps wait for (--gpu-samples)",
       GpuStallColumns(), FillGpuStalls, false, kTotal, "Samples"},
      {"cuda_gpu_sum", "CUDA GPU Summary (Kernels/MemOps)", "all GPU work by name",
       Times("Instances", {"Category", "Operation"}), FillGpuWork, true, kTotal, "Instances"},
  };
}

std::vector<TableKind> CallKinds() {
  return {
      {"cuda_api_sum", "CUDA API Summary", "CUDA calls by name", Times("Num Calls", {"Name"}),
       FillApis, false, kTotal, "Num Calls"},
      {"cuda_api_gpu_sum", "CUDA Summary (API/Kernels/MemOps)", "CUDA calls and GPU work by name",
       Times("Instances", {"Category", "Operation"}), FillApisAndGpuWork, true, kTotal,
       "Instances"},
      {"cuda_kern_exec_sum", "CUDA Kernel Launch & Exec Time Summary",
       "launch, queue and run time of kernels", ExecutionColumns(), FillExecutions, true},
      {"cuda_overhead_sum", "CUDA Overhead Summary", "overhead of the driver and CUPTI",
       Times("Count", {"Overhead"}), FillOverheads, false, kTotal, "Count"},
      {"jit_sum", "CUDA JIT Summary", "compilation of GPU code at run time", JitColumns(), FillJit,
       false, kTotal, "Count"},
      {"cpu_func_sum", "CPU Function Summary", "CPU samples by function, self and total",
       FunctionColumns(), FillFunctions, false, "Self Time (ns)", "Samples"},
      {"callpath_sum", "GPU Time by Launch Path", "GPU work by the stack that launched it",
       Joined({Times("Instances", {}), Path()}), FillPaths, false, kTotal, "Instances",
       FillCallTree},
      {"func_sum", "Function Summary (CPU and GPU)",
       "CPU and GPU time by function, Python and native", CostColumns(), FillAllFunctions},
      {"step_sum", "Step Summary", "duration, GPU time and work of steps (--step)", StepColumns(),
       FillSteps, true},
      {"step_trace", "Step Trace", "every step (--step)", StepTraceColumns(), FillStepTrace, true},
      {"critical_path_sum", "Critical Path Summary",
       "what decides how long steps, or the program, take (--step)", CriticalColumns(),
       FillCriticalPath, true},
      {"what_if", "What If", "how much shorter steps would be (--what-if)", WhatIfColumns(),
       FillWhatIf, true},
      {"op_sum", "Operator Summary", "GPU and launch time by operator of PyTorch or XLA",
       OperatorColumns(), FillOperators, false, "GPU Self Time (ns)", "GPU Work"},
      {"module_sum", "Module Summary", "GPU and launch time by torch.nn.Module", ModuleColumns(),
       FillModules, true, "GPU Self Time (ns)", "GPU Work", nullptr, true},
      {"kernel_library_sum", "Kernel Summary by Library", "kernels by the library they are of",
       Times("Instances", {"Library"}), FillLibraries, true, kTotal, "Instances"},
      {"thread_sum", "Thread Summary", "CPU and GPU time by process and thread", ThreadColumns(),
       FillThreads},
      {"gpu_busy_sum", "GPU Busy Time by Stream", "how busy each GPU and each stream was",
       Numbers({"Busy (%)", "Busy Time (ns)", "Idle Time (ns)", "Total Time (ns)", "Instances",
                "DevId", "Pid", "Ctx", "Strm"}),
       FillBusy},
      {"gpu_idle_sum", "GPU Idle Time by CPU Function", "what the CPU did while a GPU was idle",
       Times("Instances", {"Name"}), FillIdle, false, kTotal, "Instances"},
      {"gpu_gaps", "GPU Gaps", "each gap of a GPU, longest first, and what ended it", GapColumns(),
       FillGaps, true},
      {"unfinished_sum", "Unfinished GPU Work",
       "GPU work that failed or did not end, and its launches", UnfinishedColumns(), FillUnfinished,
       true},
      {"gpu_metric_sum", "GPU Metric Summary",
       "clocks, power and hardware counters of GPUs, also by kernel (--gpu-metrics)",
       MetricColumns(), FillGpuMetrics, false, "Avg", "Samples", nullptr, false, true},
      {"gpu_throttle_sum", "GPU Throttle Summary", "why clocks of GPUs were low, and how long",
       Joined({Numbers({"Time (%)", "Time (ns)", "Samples"}), Keys({"DevId"}), Texts({"Reason"})}),
       FillGpuThrottle, false, "Time (ns)", "Samples"},
      {"cuda_wait_sum", "CUDA Synchronization Summary", "waits for GPU work, by call and work",
       Times("Instances", {"Name"}), FillWaits, false, kTotal, "Instances"},
      {"off_cpu_sum", "Off-CPU Time Summary", "what threads waited for, and where (--off-cpu)",
       OffCpuColumns(), FillOffCpu, false, kTotal, "Instances"},
      {"wakeup_sum", "Wake-up Summary", "who ended waits, and where (--off-cpu)", WakeUpColumns(),
       FillWakeUps, false, kTotal, "Wake-ups"},
      {"lock_sum", "Lock Summary",
       "waits for futexes by address, and who released them (--off-cpu)", LockColumns(), FillLocks,
       false, kTotal, "Waits"},
      {"gpu_mem_alloc_sum", "GPU Memory Allocation Summary",
       "memory by allocating stack (--gpu-memory)",
       Joined(
           {Numbers({"Peak (MB)", "Total (MB)", "Count", "Not Freed (MB)", "Not Freed", "DevId"}),
            Texts({"Memory"}), Path()}),
       FillAllocations, false, "Total (MB)", "Count"},
      {"nvtx_sum", "NVTX Range Summary", "NVTX ranges by name",
       Times("Instances", {"Style", "Range"}), FillRanges, false, kTotal, "Instances"},
      {"nvtx_kern_sum", "NVTX Range Kernel Summary", "kernels by the NVTX range that launched them",
       RangeKernelColumns(), FillKernelsInRanges, true, kTotal, "Kern Inst"},
      {"probe_sum", "Probe Summary", "probe hits, and the duration of the probed calls",
       ProbeColumns(), FillProbes},
      {"cuda_gpu_trace", "CUDA GPU Trace", "every kernel, memory operation and graph replay",
       GpuTraceColumns(), FillGpuTrace, true},
      {"cuda_api_trace", "CUDA API Trace", "every CUDA call", ApiTraceColumns(), FillApiTrace,
       true},
  };
}

// Sums over events, each by itself, or a row for each. Other tables need all neighbors of an
// event: what else ran, what waited for it, what range it was in.
bool CanBeSampled(std::string_view table) {
  constexpr std::array<std::string_view, 16> kTables = {"cuda_gpu_kern_sum",
                                                        "cuda_gpu_kern_gb_sum",
                                                        "cuda_gpu_graph_sum",
                                                        "cuda_gpu_mem_time_sum",
                                                        "cuda_gpu_mem_size_sum",
                                                        "cuda_gpu_sum",
                                                        "cuda_api_sum",
                                                        "cuda_api_gpu_sum",
                                                        "cuda_overhead_sum",
                                                        "jit_sum",
                                                        "cpu_func_sum",
                                                        "callpath_sum",
                                                        "func_sum",
                                                        "thread_sum",
                                                        "cuda_gpu_trace",
                                                        "cuda_api_trace"};
  return std::find(kTables.begin(), kTables.end(), table) != kTables.end();
}

Error UsageError(std::string message,
                 std::string hint = "xpu-report --list-tables lists the tables") {
  return Error{ErrorKind::kUsage, std::move(message), std::move(hint)};
}

Error NoSuchTable(std::string_view wanted) {
  const std::vector<std::string_view> tables = TopTableNames();
  const std::vector<std::string> names(tables.begin(), tables.end());
  std::string message = Format("--table: unknown table '{}'", wanted);
  const std::string near = NearestNames(names, wanted);
  return near.empty() ? UsageError(std::move(message))
                      : UsageError(std::move(message), Format("did you mean {}?", near));
}

// "collective_sum,straggler_sum" is two.
std::vector<std::string_view> NamesOf(const ViewOptions& options) {
  std::vector<std::string_view> names;
  if (options.table.empty()) return names;
  for (const std::string_view name : Split(options.table, ",")) names.push_back(name);
  return names;
}

Status CheckSort(const ViewOptions& options) {
  const std::vector<const TableKind*> tables = WantedTables(options);
  for (const TableKind* table : tables) {
    const Result<size_t> column = FindColumn(table->columns, options.sort);
    if (column.ok()) return Ok();
    if (tables.size() == 1) {
      return UsageError("--sort: " + column.error().message,
                        "the beginning of a column's name is enough");
    }
  }
  return UsageError(Format("--sort: no table has a column '{}'", options.sort),
                    "without --sort, the header of each table shows its columns");
}

}  // namespace

const std::vector<TableKind>& TableKinds() {
  static const std::vector<TableKind> kinds = [] {
    std::vector<TableKind> all = GpuKinds();
    for (TableKind& kind : CallKinds()) all.push_back(std::move(kind));
    for (TableKind& kind : RankKinds()) all.push_back(std::move(kind));
    return all;
  }();
  return kinds;
}

std::vector<std::string_view> TopTableNames() {
  std::vector<std::string_view> names;
  for (const TableKind& kind : TableKinds()) names.push_back(kind.name);
  return names;
}

bool IsTableName(std::string_view name) {
  const std::vector<std::string_view> names = TopTableNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool TableShowsLines(std::string_view name) {
  const std::vector<TableKind>& kinds = TableKinds();
  return std::any_of(kinds.begin(), kinds.end(), [name](const TableKind& kind) {
    return kind.name == name && kind.shows_lines;
  });
}

std::string TopTableList() {
  std::string text;
  for (const TableKind& kind : TableKinds()) {
    AppendFormat(text, "{:<22} {}{}\n", kind.name, kind.about,
                 kind.by_name_only ? " (only with --table)" : "");
  }
  return text;
}

Status CheckTopOptions(const ViewOptions& options, bool compares) {
  for (const std::string_view name : NamesOf(options)) {
    if (!IsTableName(name)) return NoSuchTable(name);
    if (options.sample_rate > 1 && !CanBeSampled(name)) {
      return UsageError(
          Format("--table: {} needs every event and cannot be combined with --sample", name));
    }
  }
  if (compares && !options.table.empty() && WantedTables(options).front()->total.empty()) {
    return UsageError(Format("--table: {} has no totals to compare", options.table));
  }
  return options.sort.empty() ? Ok() : CheckSort(options);
}

std::vector<const TableKind*> WantedTables(const ViewOptions& options) {
  std::vector<const TableKind*> tables;
  const std::vector<std::string_view> names = NamesOf(options);
  for (const TableKind& kind : TableKinds()) {
    if (options.sample_rate > 1 && !CanBeSampled(kind.name)) continue;
    const bool is_named = std::find(names.begin(), names.end(), kind.name) != names.end();
    if (names.empty() ? !kind.by_name_only : is_named) tables.push_back(&kind);
  }
  return tables;
}

Table MakeTable(const TableKind& kind, TableSource& source) {
  Table table{std::string(kind.name), std::string(kind.title), kind.columns};
  kind.fill(source, table);
  return table;
}

}  // namespace xpu
