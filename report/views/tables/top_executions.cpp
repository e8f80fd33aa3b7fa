// cuda_kern_exec_sum: how long launches take, how long their kernels wait and run.
#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/query/statistics.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

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
  for (const GpuWork& work : analysis.correlation.work) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    if (work.launch == GpuWork::kNoLaunch) continue;
    const Launch& launch = analysis.correlation.launches[work.launch];
    if (!launch.has_call) continue;
    const uint32_t gpu = analysis.gpus.Of(work.instance, work.device_id).number;
    const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
    Add(launch, work,
        phases[{launch.pid, launch.tid, gpu, ApiNameOf(analysis.api_names, launch),
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

}  // namespace

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

}  // namespace xpu
