// critical_path_sum.
#include <algorithm>
#include <map>
#include <tuple>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/critical_path/what_if.h"
#include "report/query/gpu_idle.h"
#include "report/query/off_cpu_names.h"
#include "report/query/off_cpu_sums.h"
#include "report/query/readable_paths.h"
#include "report/query/running_time.h"

namespace xpu {
namespace {

std::string NameOf(const Analysis& analysis, const WaitReasons& reasons, const GpuNames& names,
                   const Edge& edge) {
  switch (edge.kind) {
    case EdgeKind::kKernel:
    case EdgeKind::kMemory:
    case EdgeKind::kGraph:
    case EdgeKind::kLaunch:
    case EdgeKind::kQueue:
    case EdgeKind::kStreamWait: {
      const GpuWork& work = analysis.correlation.work[edge.index];
      if (work.kind != WorkKind::kKernel) return names.Title(work);
      return names.KernelName(analysis.model.events.kernels.Get<&Kernel::name>(work.index));
    }
    case EdgeKind::kCall:
    case EdgeKind::kGpuWait:
      return ApiNameOf(analysis.api_names, analysis.correlation.launches[edge.index]);
    case EdgeKind::kWait:
      if (edge.index == UINT32_MAX) return "[unknown]";
      return reasons.Of(analysis.model.events.off_cpu_waits[edge.index]);
    default:
      return {};
  }
}

// The innermost function in Python that runs; native code below it would part the time into too
// many rows to read.
PathId InPython(const Analysis& analysis, const CallTree& tree, PathId path) {
  for (PathId at = path; at; at = tree[at].parent) {
    if (analysis.frames[tree[at].frame].origin == FrameOrigin::kPython) return at;
  }
  return path;
}

}  // namespace

std::vector<CriticalSum> CriticalSums(Analysis& analysis, CallPaths& paths, CriticalPath& critical,
                                      const GpuNames& names) {
  ReadablePaths readable(analysis, paths.tree());
  const WaitReasons reasons(analysis);
  struct Times {
    std::vector<uint64_t> durations;
    double assumed_ns = 0;
    double sum_ns = 0;
  };
  using Key = std::tuple<EdgeKind, std::string, std::string, PathId>;
  std::map<Key, Times> all;
  std::map<ThreadKey, std::string> threads;
  for (const CriticalSegment& segment : critical.segments()) {
    const Edge& edge = segment.edge;
    const Owner owner = critical.OwnerOf(edge);
    std::string& thread = threads[owner.thread()];
    if (thread.empty()) thread = analysis.processes.ThreadTitle(owner.process, owner.tid);
    const auto add = [&](PathId path, double share, EdgeKind kind, std::string what) {
      Times& times = all[{kind, thread, std::move(what), readable.Of(path)}];
      const double ns = share * static_cast<double>(segment.ns());
      times.durations.push_back(ToSaturated(ns));
      times.sum_ns += ns;
      if (edge.is_assumed) times.assumed_ns += ns;
    };
    if (edge.kind != EdgeKind::kRunning) {
      add(critical.PathOf(edge), 1, edge.kind, NameOf(analysis, reasons, names, edge));
      continue;
    }
    for (const CodeShare& part : critical.CodeOf(edge)) {
      const PathId outer = paths.tree()[part.path].parent;
      const bool waits =
          outer && analysis.frames[paths.tree()[part.path].frame].name == kNoSampleFrame;
      add(InPython(analysis, paths.tree(), waits ? outer : part.path), part.share,
          waits ? EdgeKind::kWait : edge.kind, waits ? std::string(kNoSampleFrame) : "");
    }
  }
  std::vector<CriticalSum> rows;
  for (auto& [key, times] : all) {
    CriticalSum row{.times = Summarize({}, times.durations),
                    .assumed_ns = ToSaturated(times.assumed_ns + 0.5),
                    .kind = std::get<0>(key),
                    .thread = std::get<1>(key),
                    .what = std::get<2>(key),
                    .path = std::get<3>(key)};
    row.times.total = ToSaturated(times.sum_ns + 0.5);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const CriticalSum& a, const CriticalSum& b) {
    return a.times.total > b.times.total;
  });
  return rows;
}

}  // namespace xpu
