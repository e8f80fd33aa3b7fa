// gpu_busy_sum: how busy each GPU was, and each of its streams; gpu_gaps; and unfinished_sum: GPU
// work that did not end, and what is known of why.
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "format/base/source_name.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/base/flat_map.h"
#include "report/base/intervals.h"
#include "report/model/recorded_time.h"
#include "report/query/gpu_busy.h"
#include "report/query/gpu_idle.h"
#include "report/query/own_lines.h"
#include "report/query/readable_paths.h"
#include "report/query/unfinished_work.h"
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

void Add(const GpuWork& work, Busy& busy) {
  busy.total_ns = AddSaturated(busy.total_ns, work.duration_ns);
  ++busy.count;
}

// Each GPU, then its streams.
std::vector<Busy> BusyRows(TableSource& source) {
  const Analysis& analysis = source.analysis;
  std::map<std::pair<uint32_t, std::optional<Stream>>, Busy> rows;
  Recent of_gpu(rows);
  Recent of_stream(rows);
  for (const GpuWork& work : analysis.Work()) {
    if (!work.timed || work.kind == WorkKind::kSynchronization) continue;
    const uint32_t pid = analysis.correlation.PidOf(work.instance);
    const Stream stream = {pid, ContextOf(analysis.model.events, work), work.stream_id};
    Add(work, of_gpu[{work.gpu, std::nullopt}]);
    Busy& busy = of_stream[{work.gpu, stream}];
    Add(work, busy);
    if (work.end_ns > work.start_ns) busy.spans.push_back({work.start_ns, work.end_ns});
  }
  std::map<uint32_t, const GpuBusy*> gpus;
  for (const GpuBusy& gpu : source.busy()) {
    rows.try_emplace({gpu.gpu, std::nullopt});
    gpus[gpu.gpu] = &gpu;
  }
  const GpuBusy none;
  std::vector<Busy> all;
  for (auto& [key, busy] : rows) {
    std::tie(busy.gpu, busy.stream) = key;
    const auto found = gpus.find(busy.gpu);
    const GpuBusy& gpu = found == gpus.end() ? none : *found->second;
    UniteSpans(busy.spans);
    busy.busy_ns = LengthNs(busy.spans);
    if (!busy.stream) busy.busy_ns = gpu.busy_ns;
    busy.active_ns = gpu.active_ns();
    // Work that a filter took out is not known by stream.
    busy.idle_ns =
        busy.stream ? busy.active_ns - std::min(busy.active_ns, busy.busy_ns) : gpu.idle_ns();
    busy.spans = {};
    all.push_back(std::move(busy));
  }
  return all;
}

class Gaps {
 public:
  explicit Gaps(TableSource& source)
      : analysis_(source.analysis),
        names_(source.names),
        paths_(source.analysis, {}),
        idle_paths_(source.analysis, paths_),
        readable_(source.analysis, paths_.tree()),
        lines_(source.analysis),
        start_ns_(StartOf(source.analysis.model)),
        parts_(source.analysis, paths_) {
    paths_.NameAhead({.samples = true, .others_samples = true, .launches = true});
    for (const GpuBusy& gpu : source.busy()) {
      VisitGaps(analysis_, gpu, [this](const IdleGap& gap) { gaps_.push_back(gap); });
    }
    for (const IdleGap& gap : gaps_) {
      idle_ns_[gap.gpu] = AddSaturated(idle_ns_[gap.gpu], gap.ns);
    }
    order_.resize(gaps_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](uint32_t a, uint32_t b) { return gaps_[a].ns > gaps_[b].ns; });
  }

  size_t size() const { return order_.size(); }

  void Make(size_t row, Row& cells) {
    const IdleGap& gap = gaps_[order_[row]];
    const Owner owner = OwnerOf(analysis_, gap);
    const uint64_t start_ns = gap.start_ns - std::min(gap.start_ns, start_ns_);
    const std::vector<IdlePart>& parts = parts_.Of(gap);
    const std::vector<FrameId> path = paths_.tree().Path(readable_.Of(idle_paths_.MostOf(parts)));
    cells.assign(
        {std::to_string(start_ns), std::to_string(gap.ns), Percent(gap.ns, idle_ns_[gap.gpu]),
         std::to_string(gap.gpu), owner.pid == 0 ? std::string() : std::to_string(owner.pid),
         owner.tid == 0 ? std::string() : std::to_string(owner.tid),
         std::string(analysis_.tracks.NameOf(owner)), TitleOf(gap.before), TitleOf(gap.after),
         gap.launch == GpuWork::kNoLaunch
             ? std::string()
             : ApiNameOf(analysis_.api_names, analysis_.correlation.launches[gap.launch]),
         LineOf(parts, path), FoldedText(analysis_.frames, path)});
  }

 private:
  // Where it was most of the time.
  std::string LineOf(const std::vector<IdlePart>& parts, const std::vector<FrameId>& path) {
    std::map<StackId, uint64_t> stacks;
    for (const IdlePart& part : parts) {
      StackId stack;
      if (part.sample != kNoSample) {
        stack = analysis_.model.events.cpu_samples.Get<&CpuSample::python_stack>(part.sample);
      }
      if (part.launch != GpuWork::kNoLaunch) {
        stack = analysis_.correlation.launches.Get<&Launch::python_stack>(part.launch);
      }
      stacks[stack] += part.ns;
    }
    return lines_.Of(path, stacks);
  }

  std::string TitleOf(uint32_t work) const {
    return work == kNoWork ? "[other work]" : names_.Title(analysis_.correlation.work[work]);
  }

  Analysis& analysis_;
  const GpuNames& names_;
  CallPaths paths_;
  IdlePaths idle_paths_;
  ReadablePaths readable_;
  OwnLines lines_;
  const uint64_t start_ns_;
  IdleParts parts_;
  std::vector<IdleGap> gaps_;
  std::map<uint32_t, uint64_t> idle_ns_;  // by GPU
  std::vector<uint32_t> order_;
};

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

void FillBusy(TableSource& source, Table& table) {
  const auto rows = std::make_shared<const std::vector<Busy>>(BusyRows(source));
  table.row_count = rows->size();
  table.row = [rows](size_t index, Row& cells) {
    const Busy& row = (*rows)[index];
    cells.assign({Percent(row.busy_ns, row.active_ns), std::to_string(row.busy_ns),
                  std::to_string(row.idle_ns), std::to_string(row.total_ns),
                  std::to_string(row.count), std::to_string(row.gpu)});
    cells.resize(cells.size() + 3);
    if (!row.stream) return;
    const auto& [pid, context, stream] = *row.stream;
    cells[6] = std::to_string(pid);
    cells[7] = std::to_string(context);
    cells[8] = std::to_string(stream);
  };
}

void FillGaps(TableSource& source, Table& table) {
  const auto gaps = std::make_shared<Gaps>(source);
  table.row_count = gaps->size();
  table.row = [gaps](size_t index, Row& cells) { gaps->Make(index, cells); };
}

void FillUnfinished(TableSource& source, Table& table) {
  const auto rows = std::make_shared<UnfinishedRows>(source);
  table.row_count = rows->size();
  table.row = [rows](size_t index, Row& cells) { rows->Make(index, cells); };
}

}  // namespace xpu
