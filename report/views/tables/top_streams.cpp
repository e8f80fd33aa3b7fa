// gpu_busy_sum: how busy each GPU was, and each of its streams.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/model/saturated.h"
#include "report/query/gpu_busy.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

// Streams are of one context of one process.
using Stream = std::tuple<uint32_t, uint32_t, uint32_t>;  // process, context, stream

struct Busy {
  uint32_t gpu = 0;
  std::optional<Stream> stream = {};  // none: all of the GPU
  uint64_t active_ns = 0;             // of the GPU
  uint64_t busy_ns = 0;               // the union
  uint64_t idle_ns = 0;
  uint64_t total_ns = 0;  // the sum
  uint64_t count = 0;
  std::vector<BusySpan> spans = {};
};

uint32_t ContextOf(const LoadedEvents& events, const GpuWork& work) {
  switch (work.kind) {
    case WorkKind::kKernel:
      return events.kernels.Get<&Kernel::context_id>(work.index);
    case WorkKind::kMemcpy:
      return events.memcpys.Get<&Memcpy::context_id>(work.index);
    case WorkKind::kMemset:
      return events.memsets.Get<&Memset::context_id>(work.index);
    case WorkKind::kGraph:
      return events.graph_launches.Get<&GraphLaunch::context_id>(work.index);
    case WorkKind::kSynchronization:
      break;
  }
  return 0;
}

void Add(const GpuWork& work, Busy& busy) {
  busy.total_ns = AddSaturated(busy.total_ns, work.duration_ns);
  ++busy.count;
  if (work.end_ns > work.start_ns) busy.spans.push_back({work.start_ns, work.end_ns});
}

// Each GPU, then its streams.
std::vector<Busy> BusyRows(const Analysis& analysis) {
  std::map<std::pair<uint32_t, std::optional<Stream>>, Busy> rows;
  for (const GpuWork& work : analysis.correlation.work) {
    if (!work.timed || work.kind == WorkKind::kSynchronization) continue;
    const uint32_t gpu = analysis.gpus.Of(work.instance, work.device_id).number;
    const uint32_t pid = PidOf(analysis, work.instance);
    const Stream stream = {pid, ContextOf(analysis.model.events, work), work.stream_id};
    Add(work, rows[{gpu, std::nullopt}]);
    Add(work, rows[{gpu, stream}]);
  }
  std::map<uint32_t, GpuBusy> gpus;
  for (GpuBusy& gpu : FindGpuBusy(analysis)) {
    rows.try_emplace({gpu.gpu, std::nullopt});
    gpus.emplace(gpu.gpu, std::move(gpu));
  }
  std::vector<Busy> all;
  for (auto& [key, busy] : rows) {
    std::tie(busy.gpu, busy.stream) = key;
    Unite(busy.spans);
    for (const BusySpan& span : busy.spans) busy.busy_ns += span.end_ns - span.start_ns;
    const GpuBusy& gpu = gpus[busy.gpu];
    busy.active_ns = gpu.active_ns();
    // What a filter took out is not known by stream.
    busy.idle_ns =
        busy.stream ? busy.active_ns - std::min(busy.active_ns, busy.busy_ns) : gpu.idle_ns();
    busy.spans = {};
    all.push_back(std::move(busy));
  }
  return all;
}

}  // namespace

void FillBusy(TableSource& source, Table& table) {
  const auto rows = std::make_shared<const std::vector<Busy>>(BusyRows(source.analysis));
  table.row_count = rows->size();
  table.row = [rows](size_t index, Row& cells) {
    const Busy& row = (*rows)[index];
    const double share = row.active_ns == 0 ? 0
                                            : 100.0 * static_cast<double>(row.busy_ns) /
                                                  static_cast<double>(row.active_ns);
    cells.assign({Format("{:.1f}", share), std::to_string(row.busy_ns), std::to_string(row.idle_ns),
                  std::to_string(row.total_ns), std::to_string(row.count),
                  std::to_string(row.gpu)});
    cells.resize(cells.size() + 3);
    if (!row.stream) return;
    const auto& [pid, context, stream] = *row.stream;
    cells[6] = std::to_string(pid);
    cells[7] = std::to_string(context);
    cells[8] = std::to_string(stream);
  };
}

}  // namespace xpu
