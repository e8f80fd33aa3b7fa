#include "report/gpu/gpu_busy.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/tree/call_tree.h"

namespace xpu {
void Unite(std::vector<BusySpan>& spans) {
  std::sort(spans.begin(), spans.end(), [](const BusySpan& a, const BusySpan& b) {
    return std::tie(a.start_ns, a.first) < std::tie(b.start_ns, b.first);
  });
  size_t kept = 0;
  for (const BusySpan& span : spans) {
    if (kept > 0 && span.start_ns <= spans[kept - 1].end_ns) {
      spans[kept - 1].end_ns = std::max(spans[kept - 1].end_ns, span.end_ns);
    } else {
      spans[kept++] = span;
    }
  }
  spans.resize(kept);
}

uint64_t PausedBetween(const std::vector<BusySpan>& spans, const std::vector<Pause>& pauses) {
  uint64_t paused_ns = 0;
  for (size_t i = 1; i < spans.size() && !pauses.empty(); ++i) {
    paused_ns += PausedNs(pauses, spans[i - 1].end_ns, spans[i].start_ns);
  }
  return paused_ns;
}

std::vector<GpuBusy> FindGpuBusy(const Analysis& analysis) {
  std::map<uint32_t, GpuBusy> gpus;
  const GpuWorkList& all_work = analysis.correlation.work;
  for (uint32_t i = 0; i < all_work.size(); ++i) {
    const GpuWork& work = all_work[i];
    if (!work.timed || work.kind == WorkKind::kSynchronization) continue;
    if (work.end_ns <= work.start_ns) continue;
    GpuBusy& gpu = gpus[analysis.gpus.Of(work.instance, work.device_id).number];
    gpu.spans.push_back({work.start_ns, work.end_ns, i});
    gpu.sum_ns = AddSaturated(gpu.sum_ns, work.end_ns - work.start_ns);
  }
  const std::vector<Pause> pauses = FindPauses(analysis.model);
  std::vector<GpuBusy> all;
  for (auto& [number, gpu] : gpus) {
    gpu.gpu = number;
    Unite(gpu.spans);
    for (const BusySpan& span : gpu.spans) gpu.busy_ns += span.end_ns - span.start_ns;
    gpu.paused_ns = PausedBetween(gpu.spans, pauses);
    all.push_back(std::move(gpu));
  }
  return all;
}

}  // namespace xpu
