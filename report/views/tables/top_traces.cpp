// cuda_gpu_trace and cuda_api_trace: a row for each event, in order of time.
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "report/analysis/call_paths.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_memory.h"
#include "report/query/readable_paths.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

// nsys's name of a CUpti_ActivityMemoryKind.
std::string MemoryKind(uint32_t kind) {
  constexpr std::array<std::string_view, 8> kKinds = {"Unknown",       "Pageable",      "Pinned",
                                                      "Device",        "Array",         "Managed",
                                                      "Device Static", "Managed Static"};
  return std::string(kind < kKinds.size() ? kKinds[kind] : kKinds[0]);
}

// From the start of the recording; hostile captures may say before it.
std::string SinceStart(uint64_t time_ns, uint64_t start_ns) {
  return time_ns >= start_ns ? std::to_string(time_ns - start_ns)
                             : "-" + std::to_string(start_ns - time_ns);
}

class GpuTrace {
 public:
  explicit GpuTrace(TableSource& source)
      : analysis_(source.analysis), names_(source.names), start_ns_(StartOf(analysis_.model)) {
    const GpuWorkList& work = analysis_.correlation.work;
    for (const uint32_t i : analysis_.Work().places()) {
      if (work[i].kind != WorkKind::kSynchronization) order_.push_back(i);
    }
    // Events without a time come last.
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(!work[a].timed, work[a].start_ns) <
             std::tuple(!work[b].timed, work[b].start_ns);
    });
  }

  size_t size() const { return order_.size(); }

  void MakeRow(size_t index, Row& cells) const {
    const GpuWork& work = analysis_.correlation.work[order_[index]];
    cells.assign(kColumns, {});
    if (work.timed) {
      cells[kStart] = SinceStart(work.start_ns, start_ns_);
      cells[kDuration] = std::to_string(work.duration_ns);
    }
    cells[kCorrelation] = std::to_string(work.correlation_id);
    cells[kDevice] = DeviceOf(work);
    cells[kStream] = std::to_string(work.stream_id);
    AddKind(work, cells);
  }

 private:
  enum Place : size_t {
    kStart,
    kDuration,
    kCorrelation,
    kGrid,
    kBlock = kGrid + 3,
    kRegisters = kBlock + 3,
    kStaticMemory,
    kDynamicMemory,
    kBytes,
    kThroughput,
    kSource,
    kDestination,
    kDevice,
    kContext,
    kStream,
    kName,
    kColumns,
  };

  std::string DeviceOf(const GpuWork& work) const {
    const GpuDevices::Gpu gpu = analysis_.gpus.Of(work.instance, work.device_id);
    if (gpu.device == nullptr) return Format("({})", gpu.number);
    return Format("{} ({})", analysis_.model.Text(gpu.device->name), gpu.number);
  }

  void AddKind(const GpuWork& work, Row& cells) const {
    const LoadedEvents& events = analysis_.model.events;
    switch (work.kind) {
      case WorkKind::kKernel:
        return AddKernel(events.kernels[work.index], cells);
      case WorkKind::kMemcpy:
        return AddCopy(events.memcpys[work.index], work, cells);
      case WorkKind::kMemset:
        return AddSet(events.memsets[work.index], work, cells);
      case WorkKind::kGraph:
        cells[kContext] = std::to_string(events.graph_launches[work.index].context_id);
        cells[kName] = names_.Title(work);
        return;
      case WorkKind::kSynchronization:
        return;
    }
  }

  void AddKernel(const Kernel& kernel, Row& cells) const {
    const std::array<int32_t, 6> shape = {kernel.grid_x,  kernel.grid_y,  kernel.grid_z,
                                          kernel.block_x, kernel.block_y, kernel.block_z};
    for (size_t i = 0; i < shape.size(); ++i) cells[kGrid + i] = std::to_string(shape[i]);
    cells[kRegisters] = std::to_string(kernel.registers_per_thread);
    cells[kStaticMemory] = Megabytes(kernel.static_shared_memory_bytes);
    cells[kDynamicMemory] = Megabytes(kernel.dynamic_shared_memory_bytes);
    cells[kContext] = std::to_string(kernel.context_id);
    cells[kName] = names_.KernelName(kernel.name);
  }

  static void AddBytes(uint64_t bytes, const GpuWork& work, Row& cells) {
    cells[kBytes] = Megabytes(static_cast<double>(bytes));
    if (work.timed && work.duration_ns > 0) {  // bytes per ns are 1000 MB/s
      const double rate = static_cast<double>(bytes) / static_cast<double>(work.duration_ns);
      cells[kThroughput] = Format("{:.3f}", rate * 1e3);
    }
  }

  void AddCopy(const Memcpy& copy, const GpuWork& work, Row& cells) const {
    AddBytes(copy.size_bytes, work, cells);
    cells[kSource] = MemoryKind(copy.source_kind);
    cells[kDestination] = MemoryKind(copy.destination_kind);
    cells[kContext] = std::to_string(copy.context_id);
    cells[kName] = CopyOperationName(copy.copy_kind);
  }

  void AddSet(const Memset& set, const GpuWork& work, Row& cells) const {
    AddBytes(set.size_bytes, work, cells);
    cells[kSource] = MemoryKind(set.memory_kind);
    cells[kContext] = std::to_string(set.context_id);
    cells[kName] = kSetOperationName;
  }

  const Analysis& analysis_;
  const GpuNames& names_;
  const uint64_t start_ns_;
  std::vector<uint32_t> order_;  // of Correlation::work
};

class ApiTrace {
 public:
  explicit ApiTrace(TableSource& source)
      : analysis_(source.analysis), start_ns_(StartOf(analysis_.model)) {
    const LaunchList& launches = analysis_.correlation.launches;
    for (const uint32_t i : analysis_.Launches().places()) {
      if (launches[i].has_call || launches[i].probe != 0) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return launches[a].start_ns < launches[b].start_ns;
    });
  }

  size_t size() const { return order_.size(); }

  void MakeRow(size_t index, Row& cells) const {
    const Launch& launch = analysis_.correlation.launches[order_[index]];
    const Owner owner = launch.owner();
    cells.assign({SinceStart(launch.start_ns, start_ns_),
                  std::to_string(launch.end_ns - launch.start_ns),
                  ApiNameOf(analysis_.api_names, launch), std::to_string(launch.return_value),
                  // Launches that only probes saw have no id.
                  launch.probe != 0 ? std::string() : std::to_string(launch.correlation_id),
                  std::to_string(launch.pid), std::to_string(launch.tid),
                  std::string(analysis_.tracks.NameOf(owner))});
  }

 private:
  const Analysis& analysis_;
  const uint64_t start_ns_;
  std::vector<uint32_t> order_;  // of Correlation::launches
};

template <typename Trace>
void SetTrace(TableSource& source, Table& table) {
  const auto trace = std::make_shared<const Trace>(source);
  table.row_count = trace->size();
  table.row = [trace](size_t index, Row& cells) { trace->MakeRow(index, cells); };
}

struct Phases {
  std::vector<uint64_t> all;    // from the start of the call to the end of what ends later
  std::vector<uint64_t> call;   // the call
  std::vector<uint64_t> queue;  // from its end to the start of the kernel, where that is later
  std::vector<uint64_t> kernel;
};

// Process, thread, GPU, call, kernel.
using Key = std::tuple<uint32_t, uint32_t, uint32_t, std::string_view, std::string_view>;

struct Execution {
  Key key;
  Statistics all, call, queue, kernel;
};

void Add(const Launch& launch, const GpuWork& work, Phases& phases) {
  const uint64_t end_ns = std::max(launch.end_ns, work.end_ns);
  phases.all.push_back(end_ns - std::min(end_ns, launch.start_ns));
  phases.call.push_back(launch.end_ns - launch.start_ns);
  if (work.start_ns > launch.end_ns) phases.queue.push_back(work.start_ns - launch.end_ns);
  phases.kernel.push_back(work.duration_ns);
}

std::vector<Execution> Executions(TableSource& source) {
  const Analysis& analysis = source.analysis;
  std::map<Key, Phases> phases;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    if (work.launch == GpuWork::kNoLaunch) continue;
    const Launch& launch = analysis.correlation.launches[work.launch];
    if (!launch.has_call) continue;
    const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
    Add(launch, work,
        phases[{launch.pid, launch.tid, work.gpu, ApiNameOf(analysis.api_names, launch),
                source.names.KernelName(name)}]);
  }
  std::vector<Execution> rows;
  rows.reserve(phases.size());
  for (auto& [key, of] : phases) {
    rows.push_back({key, Summarize({}, of.all), Summarize({}, of.call), Summarize({}, of.queue),
                    Summarize({}, of.kernel)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Execution& a, const Execution& b) {
    return a.all.total > b.all.total;
  });
  return rows;
}

void Append(const Statistics& times, Row& cells) {
  if (times.count == 0) {  // no kernel had to wait
    cells.resize(cells.size() + 5);
    return;
  }
  cells.push_back(Format("{:.1f}", times.average));
  cells.push_back(Format("{:.1f}", times.median));
  cells.push_back(std::to_string(times.smallest));
  cells.push_back(std::to_string(times.largest));
  cells.push_back(Format("{:.1f}", times.deviation));
}

struct AllocationRow {
  uint64_t total_bytes = 0;
  uint64_t count = 0;
  uint64_t peak_bytes = 0;
  uint64_t left_bytes = 0;
  uint64_t left_count = 0;
  uint32_t gpu = 0;
  std::string_view memory;
  PathId path;

  void Add(uint64_t bytes, bool at_peak, bool is_left) {
    total_bytes = AddSaturated(total_bytes, bytes);
    ++count;
    if (at_peak) peak_bytes = AddSaturated(peak_bytes, bytes);
    if (!is_left) return;
    left_bytes = AddSaturated(left_bytes, bytes);
    ++left_count;
  }
};

std::vector<AllocationRow> RowsOf(Analysis& analysis, CallPaths& paths) {
  ReadablePaths readable(analysis, paths.tree());
  std::map<std::tuple<uint32_t, std::string_view, PathId>, AllocationRow> rows;
  const auto row_of = [&](uint32_t gpu, std::string_view memory, PathId path) -> AllocationRow& {
    AllocationRow& row = rows[{gpu, memory, path}];
    row.gpu = gpu;
    row.memory = memory;
    row.path = path;
    return row;
  };
  const AllocatorMemory allocators(analysis);
  for (const AllocatorBlock& block : allocators.blocks()) {
    row_of(allocators.uses()[block.use].gpu, "PyTorch", readable.Of(paths.Of(*block.event)))
        .Add(static_cast<uint64_t>(block.event->size_bytes),
             allocators.IsIn(MemoryView::kPeak, block), block.end == AllocatorBlock::kNever);
  }
  for (const MemoryAllocation& allocation : FollowMemory(analysis).allocations) {
    const PathId path =
        allocation.launch == GpuWork::kNoLaunch
            ? PathId{}
            : readable.Of(paths.OfLaunch(analysis.correlation.launches[allocation.launch]));
    const MemoryOperation& operation = *allocation.operation;
    const std::string_view memory =
        allocators.IsReserve(operation) ? "PyTorch reserve" : MemoryKindText(operation.memory_kind);
    row_of(allocation.gpu, memory, path)
        .Add(operation.size_bytes, allocation.at_peak, allocation.end_ns == 0);
  }
  std::vector<AllocationRow> sorted;
  sorted.reserve(rows.size());
  for (const auto& [key, row] : rows) sorted.push_back(row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.peak_bytes, b.total_bytes) < std::tuple(a.peak_bytes, a.total_bytes);
  });
  return sorted;
}

}  // namespace

void FillGpuTrace(TableSource& source, Table& table) { SetTrace<GpuTrace>(source, table); }

void FillApiTrace(TableSource& source, Table& table) { SetTrace<ApiTrace>(source, table); }

void FillExecutions(TableSource& source, Table& table) {
  const auto rows = std::make_shared<const std::vector<Execution>>(Executions(source));
  table.row_count = rows->size();
  table.row = [rows](size_t index, Row& cells) {
    const Execution& row = (*rows)[index];
    const auto& [pid, tid, gpu, api, kernel] = row.key;
    cells.assign({std::to_string(pid), std::to_string(tid), std::to_string(gpu),
                  std::to_string(row.all.count), std::to_string(row.queue.count)});
    for (const Statistics* times : {&row.all, &row.call, &row.queue, &row.kernel}) {
      Append(*times, cells);
    }
    cells.emplace_back(api);
    cells.emplace_back(kernel);
  };
}

void FillAllocations(TableSource& source, Table& table) {
  const FrameTable& frames = source.analysis.frames;
  const auto paths = std::make_shared<CallPaths>(source.analysis, PathOptions{});
  paths->NameAhead({.launches = true, .blocks = true});
  SetRows(table, RowsOf(source.analysis, *paths),
          [paths, &frames](const AllocationRow& row, Row& cells) {
            const auto mega = [](uint64_t bytes) { return Megabytes(static_cast<double>(bytes)); };
            cells.assign(
                {mega(row.peak_bytes), mega(row.total_bytes), std::to_string(row.count),
                 mega(row.left_bytes), std::to_string(row.left_count), std::to_string(row.gpu),
                 std::string(row.memory),
                 row.path ? FoldedText(frames, paths->tree().Path(row.path)) : "[unknown call]"});
          });
}

}  // namespace xpu
