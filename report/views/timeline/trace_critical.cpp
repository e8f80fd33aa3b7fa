#include "report/views/timeline/trace_critical.h"

#include "format/base/text.h"
#include "report/critical_path/critical_path.h"
#include "report/query/off_cpu_sums.h"

namespace xpu {

void TraceCritical::Find(const std::vector<StepSeries>& steps,
                         const std::optional<StepRange>& range) {
  const CriticalWindow window = FindCriticalSteps(analysis_, steps, range);
  if (window.steps == 0) return;
  const CriticalPath critical(analysis_, paths_, window);
  if (critical.window().steps == 0) return;
  thread_ = critical.window().thread;
  for (const CriticalSegment& segment : critical.segments()) {
    const Edge& edge = segment.edge;
    Slice slice{.start_ns = segment.start_ns,
                .end_ns = segment.end_ns,
                .assumed_ns = edge.is_assumed ? segment.ns() : 0,
                .name = {}};
    const Owner owner = critical.OwnerOf(edge);
    const bool runs = edge.kind == EdgeKind::kRunning || edge.kind == EdgeKind::kCall;
    if (IsGpuWork(edge.kind)) {
      slice.name = gpu_names_.Title(analysis_.correlation.work[edge.index]);
    } else if (runs) {
      slice.name = analysis_.processes.ThreadTitle(owner.process, owner.tid);
    } else {
      slice.name = EdgeKindName(edge.kind);
    }
    if (runs && !slices_.empty() && slices_.back().name == slice.name &&
        slices_.back().end_ns == slice.start_ns) {
      slices_.back().end_ns = slice.end_ns;
      slices_.back().assumed_ns += slice.assumed_ns;
    } else {
      slices_.push_back(std::move(slice));
    }
  }
}

void TraceCritical::Write(size_t at) {
  const Slice& slice = slices_[at];
  if (track_.tid == 0) track_ = tracks_.Critical(thread_);
  const auto [name, is_new] = names_.try_emplace(slice.name);
  if (is_new) name->second = sink_.Name(slice.name, "critical");
  sink_.AdjacentSlice(track_, name->second, slice.start_ns, slice.end_ns);
  if (slice.assumed_ns > 0) sink_.ArgThousandths("assumed_us", slice.assumed_ns);
}

}  // namespace xpu
