#include "report/query/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/overheads.h"
#include "report/analysis/sampled_events.h"
#include "report/base/flat_map.h"
#include "report/base/median.h"
#include "report/query/readable_paths.h"

namespace xpu {
namespace {

using ValuesByName = std::unordered_map<std::string_view, std::vector<uint64_t>>;

bool IsMore(const Statistics& a, const Statistics& b) {
  return a.total != b.total ? a.total > b.total : a.name < b.name;
}

// Scales a sample of values: there were `times` as many.
Statistics Multiplied(Statistics row, uint64_t times) {
  row.count = MultiplySaturated(row.count, times);
  row.total = MultiplySaturated(row.total, times);
  return row;
}

std::vector<Statistics> SummarizeAll(ValuesByName& values, uint64_t times = 1) {
  std::vector<Statistics> rows;
  rows.reserve(values.size());
  for (auto& [name, list] : values)
    rows.push_back(Multiplied(Summarize(std::string(name), list), times));
  std::sort(rows.begin(), rows.end(), IsMore);
  return rows;
}

void AddCategory(std::vector<CategoryTimes>& all, std::string_view category,
                 std::vector<Statistics> rows) {
  for (Statistics& row : rows) all.push_back({category, std::move(row)});
  std::stable_sort(all.begin(), all.end(), [](const CategoryTimes& a, const CategoryTimes& b) {
    return IsMore(a.times, b.times);
  });
}

using Dimensions = std::array<int32_t, 3>;

std::string DimensionsText(const Dimensions& dimensions) {
  return Format("{} {} {}", dimensions[0], dimensions[1], dimensions[2]);
}

// The process and, where no record names one, the pid.
using ProcessKey = std::pair<ProcessId, uint32_t>;

ProcessKey KeyOf(const Owner& owner) { return {owner.process, owner.process ? 0 : owner.pid}; }

// Samples that count something other than time cannot be added to a time.
uint64_t BusyOf(const ThreadTime& row, bool is_time) {
  return is_time ? AddSaturated(row.cpu, row.gpu_ns) : row.cpu;
}

class Threads {
 public:
  explicit Threads(const Analysis& analysis) : analysis_(analysis) {}

  ThreadTime& Of(const Owner& owner) {
    ThreadTime& row = recent_[{KeyOf(owner), owner.tid}];
    row.owner = owner;
    return row;
  }

  std::vector<ThreadTime> Take() {
    std::vector<ThreadTime> rows;
    for (auto& [key, row] : rows_) {
      // The last name that it had: threads begin with that of what starts them.
      row.thread_name = analysis_.tracks.NameOf(row.owner);
      const ProcessId process = row.owner.process;
      row.process_name = process ? std::string(analysis_.processes.Name(process)) : row.thread_name;
      row.cpu = MultiplySaturated(row.cpu, analysis_.shown.scale);
      row.samples = MultiplySaturated(row.samples, analysis_.shown.scale);
      row.gpu_ns = MultiplySaturated(row.gpu_ns, analysis_.shown.scale);
      row.gpu_work = MultiplySaturated(row.gpu_work, analysis_.shown.scale);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  const Analysis& analysis_;
  std::map<std::pair<ProcessKey, uint32_t>, ThreadTime> rows_;
  Recent<std::map<std::pair<ProcessKey, uint32_t>, ThreadTime>> recent_{rows_};
};

}  // namespace

uint64_t Percentile(const std::vector<uint64_t>& sorted, size_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

Statistics Summarize(std::string name, std::vector<uint64_t>& values) {
  Statistics row;
  row.name = std::move(name);
  row.count = values.size();
  if (values.empty()) return row;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  row.smallest = *smallest;
  row.largest = *largest;
  for (const uint64_t value : values) row.total = AddSaturated(row.total, value);
  const auto count = static_cast<double>(values.size());
  row.average = static_cast<double>(row.total) / count;
  row.median = static_cast<double>(MedianOf(values));
  if (values.size() % 2 == 0) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    const uint64_t other = *std::max_element(values.begin(), middle);
    row.median = (row.median + static_cast<double>(other)) / 2;
  }
  double squares = 0;
  for (const uint64_t value : values) {
    const double distance = static_cast<double>(value) - row.average;
    squares += distance * distance;
  }
  if (values.size() > 1) row.deviation = std::sqrt(squares / (count - 1));
  return row;
}

std::vector<Statistics> SummarizeByTotal(NamedValues& values) {
  std::vector<Statistics> rows;
  for (auto& [name, of_name] : values) rows.push_back(Summarize(name, of_name));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Statistics& a, const Statistics& b) { return a.total > b.total; });
  return rows;
}

uint64_t SumOfTotals(const std::vector<Statistics>& rows) {
  uint64_t sum = 0;
  for (const Statistics& row : rows) sum = AddSaturated(sum, row.total);
  return sum;
}

std::vector<Statistics> KernelTimes(const Analysis& analysis, const GpuNames& names) {
  ValuesByName values;
  std::unordered_map<StringId, std::vector<uint64_t>*> values_of;  // ids may share a name
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
    std::vector<uint64_t>*& of = values_of[name];
    if (of == nullptr) of = &values[names.KernelName(name)];
    of->push_back(work.duration_ns);
  }
  return SummarizeAll(values, analysis.shown.scale);
}

std::vector<Statistics> CopyTimes(const Analysis& analysis) {
  const LoadedEvents& events = analysis.model.events;
  ValuesByName values;
  for (const GpuWork& work : analysis.Work()) {
    if (!work.timed) continue;
    if (work.kind == WorkKind::kMemcpy) {
      values[CopyOperationName(events.memcpys.Get<&Memcpy::copy_kind>(work.index))].push_back(
          work.duration_ns);
    } else if (work.kind == WorkKind::kMemset) {
      values[kSetOperationName].push_back(work.duration_ns);
    }
  }
  return SummarizeAll(values, analysis.shown.scale);
}

std::vector<Statistics> CopySizes(const Analysis& analysis) {
  const LoadedEvents& events = analysis.model.events;
  ValuesByName values;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind == WorkKind::kMemcpy) {
      const Memcpy& copy = events.memcpys[work.index];
      values[CopyOperationName(copy.copy_kind)].push_back(copy.size_bytes);
    } else if (work.kind == WorkKind::kMemset) {
      values[kSetOperationName].push_back(events.memsets.Get<&Memset::size_bytes>(work.index));
    }
  }
  return SummarizeAll(values, analysis.shown.scale);
}

std::vector<Statistics> GraphTimes(const Analysis& analysis, const GpuNames& names) {
  std::set<std::string> titles;  // `values` refers to them
  ValuesByName values;
  for (const GpuWork& work : analysis.Work()) {
    if (!work.timed || work.kind != WorkKind::kGraph) continue;
    values[*titles.insert(names.Title(work)).first].push_back(work.duration_ns);
  }
  return SummarizeAll(values, analysis.shown.scale);
}

std::vector<Statistics> ApiTimes(const Analysis& analysis) {
  ValuesByName values;
  for (const Launch& launch :
       Selected(analysis.correlation.launches, analysis.shown.counted_launches)) {
    if (!launch.has_call && launch.probe == 0) continue;  // nothing but its stack is known
    values[ApiNameOf(analysis.api_names, launch)].push_back(launch.end_ns - launch.start_ns);
  }
  return SummarizeAll(values, analysis.shown.scale);
}

std::vector<Statistics> OverheadTimes(const Analysis& analysis) {
  ValuesByName values;
  for (const Overhead& overhead : analysis.Overheads()) {
    if (!IsTimed(overhead)) continue;
    values[OverheadName(overhead.overhead_kind)].push_back(overhead.end_ns - overhead.start_ns);
  }
  return SummarizeAll(values);
}

std::vector<JitTimes> JitOperationTimes(const Analysis& analysis) {
  struct Values {
    std::vector<uint64_t> ns;
    uint64_t cache_bytes = 0;
  };
  std::map<std::pair<std::string_view, std::string_view>, Values> values;
  for (const JitOperation& jit : analysis.JitOperations()) {
    if (!IsTimed(jit)) continue;
    Values& of = values[{JitOperationName(jit.operation), JitEntryName(jit.entry_kind)}];
    of.ns.push_back(jit.end_ns - jit.start_ns);
    of.cache_bytes = std::max(of.cache_bytes, jit.cache_size_bytes);
  }
  std::vector<JitTimes> rows;
  rows.reserve(values.size());
  for (auto& [key, of] : values) {
    rows.push_back({Summarize({}, of.ns), key.first, key.second, of.cache_bytes});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const JitTimes& a, const JitTimes& b) {
    return a.times.total > b.times.total;
  });
  return rows;
}

std::vector<KernelShape> KernelShapeTimes(const Analysis& analysis, const GpuNames& names) {
  std::map<std::tuple<std::string_view, Dimensions, Dimensions>, std::vector<uint64_t>> values;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    const Kernel& kernel = analysis.model.events.kernels[work.index];
    values[{names.KernelName(kernel.name),
            {kernel.grid_x, kernel.grid_y, kernel.grid_z},
            {kernel.block_x, kernel.block_y, kernel.block_z}}]
        .push_back(work.duration_ns);
  }
  std::vector<KernelShape> rows;
  for (auto& [key, list] : values) {
    const auto& [name, grid, block] = key;
    rows.push_back({Multiplied(Summarize(std::string(name), list), analysis.shown.scale),
                    DimensionsText(grid), DimensionsText(block)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const KernelShape& a, const KernelShape& b) {
    return IsMore(a.times, b.times);
  });
  return rows;
}

std::vector<CategoryTimes> GpuWorkTimes(const Analysis& analysis, const GpuNames& names) {
  std::vector<CategoryTimes> all;
  AddCategory(all, "CUDA_KERNEL", KernelTimes(analysis, names));
  AddCategory(all, "CUDA_GRAPH", GraphTimes(analysis, names));
  AddCategory(all, "MEMORY_OPER", CopyTimes(analysis));
  return all;
}

std::vector<CategoryTimes> ApiAndGpuWorkTimes(const Analysis& analysis, const GpuNames& names) {
  std::vector<CategoryTimes> all = GpuWorkTimes(analysis, names);
  AddCategory(all, "CUDA_API", ApiTimes(analysis));
  return all;
}

std::vector<LaunchPathTime> LaunchPathTimes(Analysis& analysis, KernelNames kernel_names,
                                            CallPaths& paths) {
  paths.NameAhead({.launches = true});
  GpuLeaves leaves(analysis, kernel_names);
  ReadablePaths readable(analysis, paths.tree());
  std::unordered_map<PathId, std::vector<uint64_t>> values;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    const PathId path = paths.OfWork(work);
    values[readable.Of(paths.tree().Child(path, leaves.Of(work)))].push_back(work.duration_ns);
  }
  std::vector<LaunchPathTime> rows;
  rows.reserve(values.size());
  for (auto& [path, list] : values)
    rows.push_back({path, Multiplied(Summarize({}, list), analysis.shown.scale)});
  // Equal ones as they came first.
  std::sort(rows.begin(), rows.end(), [](const LaunchPathTime& a, const LaunchPathTime& b) {
    return std::tuple(b.times.total, a.path) < std::tuple(a.times.total, b.path);
  });
  return rows;
}

std::vector<FunctionTime> FunctionTimes(const CallTree& tree, const FrameTable& frames) {
  std::unordered_map<FrameId, FunctionTime> functions;
  for (const CallTree::Node& node : tree.nodes()) {
    if (node.self_count == 0 || !node.parent) continue;
    FunctionTime& function = functions[node.frame];
    function.self_ns = AddSaturated(function.self_ns, node.self_ns);
    function.self_count += node.self_count;
  }
  const std::vector<CallTree::Total> totals = tree.Totals();
  tree.WalkOutermost(frames.size(), [&](PathId path) {
    const CallTree::Total& total = totals[path.value - 1];
    if (total.count == 0) return;
    FunctionTime& function = functions[tree[path].frame];
    function.total_ns = AddSaturated(function.total_ns, total.ns);
    function.total_count = AddSaturated(function.total_count, total.count);
  });
  std::vector<FunctionTime> rows;
  for (auto& [frame, row] : functions) {
    row.frame = frame;
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [&](const FunctionTime& a, const FunctionTime& b) {
    if (a.self_ns != b.self_ns) return a.self_ns > b.self_ns;
    if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    const NamedFrame& frame_a = frames[a.frame];
    const NamedFrame& frame_b = frames[b.frame];
    const auto key_of = [](const NamedFrame& frame) {
      return std::tie(frame.name, frame.place, frame.is_inlined, frame.module, frame.origin);
    };
    return key_of(frame_a) < key_of(frame_b);
  });
  return rows;
}

std::vector<ThreadTime> ThreadTimes(const Analysis& analysis) {
  Threads threads(analysis);
  const SampleWeights weights(analysis.model, analysis.shown);
  for (const Owned<CpuSample>& sample : analysis.CpuSamples()) {
    ThreadTime& row = threads.Of(sample.owner());
    row.cpu = AddSaturated(row.cpu, weights.Of(sample));
    ++row.samples;
  }
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    ThreadTime& row = threads.Of(work.owner());
    row.gpu_ns = AddSaturated(row.gpu_ns, work.duration_ns);
    ++row.gpu_work;
  }
  std::vector<ThreadTime> rows = threads.Take();
  const bool is_time = SamplesCountTime(analysis.model, analysis.shown);
  std::map<ProcessKey, uint64_t> of_process;
  for (const ThreadTime& row : rows) {
    uint64_t& sum = of_process[KeyOf(row.owner)];
    sum = AddSaturated(sum, BusyOf(row, is_time));
  }
  std::sort(rows.begin(), rows.end(), [&](const ThreadTime& a, const ThreadTime& b) {
    return std::tuple(of_process[KeyOf(b.owner)], KeyOf(a.owner), BusyOf(b, is_time), a.owner.tid) <
           std::tuple(of_process[KeyOf(a.owner)], KeyOf(b.owner), BusyOf(a, is_time), b.owner.tid);
  });
  return rows;
}

std::vector<ThreadTime> ProcessTimes(const std::vector<ThreadTime>& threads) {
  std::vector<ThreadTime> processes;
  for (const ThreadTime& thread : threads) {
    if (processes.empty() || KeyOf(processes.back().owner) != KeyOf(thread.owner)) {
      processes.push_back(
          {.owner = thread.owner, .process_name = thread.process_name, .thread_name = {}});
    }
    ThreadTime& process = processes.back();
    process.cpu = AddSaturated(process.cpu, thread.cpu);
    process.samples += thread.samples;
    process.gpu_ns = AddSaturated(process.gpu_ns, thread.gpu_ns);
    process.gpu_work += thread.gpu_work;
  }
  return processes;
}

}  // namespace xpu
