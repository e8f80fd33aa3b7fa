// The table of GPU memory by who allocated it: gpu_mem_alloc_sum.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "report/analysis/call_paths.h"
#include "report/model/saturated.h"
#include "report/query/gpu_memory.h"
#include "report/query/readable_paths.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

struct AllocationRow {
  uint64_t total_bytes = 0;
  uint64_t count = 0;
  uint64_t peak_bytes = 0;
  uint64_t left_bytes = 0;
  uint64_t left_count = 0;
  uint32_t gpu = 0;
  uint32_t memory_kind = 0;
  PathId path;
};

std::vector<AllocationRow> RowsOf(Analysis& analysis, CallPaths& paths) {
  ReadablePaths readable(analysis, paths.tree());
  std::map<std::tuple<uint32_t, uint32_t, PathId>, AllocationRow> rows;
  for (const MemoryAllocation& allocation : FollowMemory(analysis).allocations) {
    const PathId path =
        allocation.launch == GpuWork::kNoLaunch
            ? PathId{}
            : readable.Of(paths.OfLaunch(analysis.correlation.launches[allocation.launch]));
    const uint32_t kind = allocation.operation->memory_kind;
    const uint64_t bytes = allocation.operation->size_bytes;
    AllocationRow& row = rows[{allocation.gpu, kind, path}];
    row.gpu = allocation.gpu;
    row.memory_kind = kind;
    row.path = path;
    row.total_bytes = AddSaturated(row.total_bytes, bytes);
    ++row.count;
    if (allocation.at_peak) row.peak_bytes = AddSaturated(row.peak_bytes, bytes);
    if (allocation.end_ns != 0) continue;
    row.left_bytes = AddSaturated(row.left_bytes, bytes);
    ++row.left_count;
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

void FillAllocations(TableSource& source, Table& table) {
  const FrameTable& frames = source.analysis.frames;
  const auto paths = std::make_shared<CallPaths>(source.analysis, PathOptions{});
  paths->NameAhead({.launches = true});
  SetRows(table, RowsOf(source.analysis, *paths),
          [paths, &frames](const AllocationRow& row, Row& cells) {
            const auto mega = [](uint64_t bytes) {
              return Format("{:.3f}", static_cast<double>(bytes) / 1e6);
            };
            cells.assign(
                {mega(row.peak_bytes), mega(row.total_bytes), std::to_string(row.count),
                 mega(row.left_bytes), std::to_string(row.left_count), std::to_string(row.gpu),
                 std::string(MemoryKindText(row.memory_kind)),
                 row.path ? FoldedText(frames, paths->tree().Path(row.path)) : "[unknown call]"});
          });
}

}  // namespace xpu
