// unfinished_sum: GPU work that did not end, and what is known of why.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/query/readable_paths.h"
#include "report/query/unfinished_work.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

struct UnfinishedRow {
  const char* state;
  const UnfinishedProcess* process;
  uint32_t launch;          // whose path is shown
  uint32_t work = kNoWork;  // its record
  uint64_t count = 1;
};

class UnfinishedRows {
 public:
  explicit UnfinishedRows(TableSource& source)
      : analysis_(source.analysis),
        names_(source.names),
        paths_(source.analysis, {}),
        readable_(source.analysis, paths_.tree()),
        creations_(source.analysis),
        processes_(FindUnfinished(source.analysis)) {
    for (const UnfinishedProcess& process : processes_) Add(process);
  }

  size_t size() const { return rows_.size(); }

  void Make(size_t index, Row& cells) {
    const UnfinishedRow& row = rows_[index];
    const Launch launch = analysis_.correlation.launches[row.launch];
    const PathId path = readable_.Of(paths_.OfLaunch(launch));
    cells.assign({std::to_string(PendingNs(analysis_, *row.process, row.launch)),
                  std::to_string(row.count), row.state, "", std::to_string(launch.pid),
                  std::to_string(launch.tid), "", "", std::to_string(launch.correlation_id),
                  launch.has_call ? std::to_string(launch.return_value) : "", "", "",
                  ApiNameOf(analysis_.api_names, launch),
                  FoldedText(analysis_.frames, paths_.tree().Path(path))});
    if (row.work == kNoWork) return;
    const GpuWork work = analysis_.correlation.work[row.work];
    const LoadedEvents& events = analysis_.model.events;
    cells[3] = std::to_string(work.gpu);
    cells[6] = std::to_string(ContextOf(events, work));
    cells[7] = std::to_string(work.stream_id);
    cells[12] = names_.Title(work);
    if (work.kind != WorkKind::kKernel) return;
    const Kernel kernel = events.kernels[work.index];
    cells[10] = Format("{} {} {}", kernel.grid_x, kernel.grid_y, kernel.grid_z);
    cells[11] = Format("{} {} {}", kernel.block_x, kernel.block_y, kernel.block_z);
  }

 private:
  void Add(const UnfinishedProcess& process) {
    if (process.has_faulted())
      rows_.push_back({"returned the error", &process, process.failed_call});
    const bool is_alone = CountCandidates(process) == 1;
    const char* const state = !is_alone               ? "candidate"
                              : process.has_faulted() ? "failed"
                                                      : "pending";
    for (const UnfinishedStream& stream : process.streams) {
      for (size_t i = 0; i < stream.work.size(); ++i) {
        const GpuWork work = analysis_.correlation.work[stream.work[i]];
        rows_.push_back({i < stream.candidates ? state : "waits for its stream", &process,
                         work.launch, stream.work[i]});
        if (i < stream.candidates) AddCreations(process, work);
      }
    }
    for (const LaunchGroup& launches : process.undelivered) {
      rows_.push_back({"no record", &process, launches.first, kNoWork, launches.count});
    }
    if (process.open_call != GpuWork::kNoLaunch) {
      rows_.push_back({"has not returned", &process, process.open_call});
    }
  }

  // Rows for the nodes of a graph come after its first replay.
  void AddCreations(const UnfinishedProcess& process, const GpuWork& work) {
    if (work.kind != WorkKind::kGraph) return;
    const auto& replays = analysis_.model.events.graph_launches;
    const uint32_t graph = replays.Get<&GraphLaunch::graph_id>(work.index);
    if (!graphs_.insert({work.instance, graph}).second) return;
    for (const LaunchGroup& nodes : creations_.Of(work)) {
      rows_.push_back({"made nodes of it", &process, nodes.first, kNoWork, nodes.count});
    }
  }

  Analysis& analysis_;
  const GpuNames& names_;
  CallPaths paths_;
  ReadablePaths readable_;
  const GraphCreations creations_;
  const std::vector<UnfinishedProcess> processes_;
  std::set<std::pair<InstanceId, uint32_t>> graphs_;  // with rows for their nodes
  std::vector<UnfinishedRow> rows_;
};

}  // namespace

void FillUnfinished(TableSource& source, Table& table) {
  const auto rows = std::make_shared<UnfinishedRows>(source);
  table.row_count = rows->size();
  table.row = [rows](size_t index, Row& cells) { rows->Make(index, cells); };
}

}  // namespace xpu
