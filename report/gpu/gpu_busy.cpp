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
      if (span.end_ns > spans[kept - 1].end_ns) {
        spans[kept - 1].end_ns = span.end_ns;
        spans[kept - 1].last = span.last;
      }
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
    gpu.spans.push_back({work.start_ns, work.end_ns, i, i});
    gpu.sum_ns = AddSaturated(gpu.sum_ns, work.end_ns - work.start_ns);
  }
  for (const WorkElsewhere& work : analysis.work_elsewhere) {
    const auto gpu = gpus.find(work.gpu);
    if (gpu != gpus.end()) gpu->second.others.push_back({work.start_ns, work.end_ns});
  }
  const std::vector<Pause> pauses = UncountedTime(analysis);
  std::vector<GpuBusy> all;
  for (auto& [number, gpu] : gpus) {
    gpu.gpu = number;
    Unite(gpu.spans);
    for (const BusySpan& span : gpu.spans) gpu.busy_ns += span.end_ns - span.start_ns;
    gpu.paused_ns = PausedBetween(gpu.spans, pauses);
    Unite(gpu.others);
    gpu.others_ns = gpu.active_ns() - gpu.busy_ns;
    for (const IdleGap& gap : FindGaps(gpu, pauses)) gpu.others_ns -= gap.ns;
    all.push_back(std::move(gpu));
  }
  return all;
}

std::vector<Pause> UncountedTime(const Analysis& analysis) {
  std::vector<Pause> all = FindPauses(analysis.model);
  if (analysis.outside.empty()) return all;
  all.insert(all.end(), analysis.outside.begin(), analysis.outside.end());
  std::sort(all.begin(), all.end(),
            [](const Pause& a, const Pause& b) { return a.start_ns < b.start_ns; });
  size_t kept = 0;
  for (const Pause& pause : all) {
    if (kept > 0 && pause.start_ns <= all[kept - 1].end_ns) {
      all[kept - 1].end_ns = std::max(all[kept - 1].end_ns, pause.end_ns);
    } else {
      all[kept++] = pause;
    }
  }
  all.resize(kept);
  return all;
}

std::vector<IdleGap> FindGaps(const GpuBusy& gpu, const std::vector<Pause>& uncounted) {
  std::vector<IdleGap> gaps;
  const auto add = [&](uint64_t start_ns, uint64_t end_ns, uint32_t before, uint32_t after) {
    if (end_ns <= start_ns) return;
    const uint64_t ns = end_ns - start_ns - PausedNs(uncounted, start_ns, end_ns);
    if (ns > 0) gaps.push_back({gpu.gpu, start_ns, end_ns, ns, before, after});
  };
  auto other = gpu.others.begin();
  for (size_t i = 1; i < gpu.spans.size(); ++i) {
    uint64_t start_ns = gpu.spans[i - 1].end_ns;
    const uint64_t end_ns = gpu.spans[i].start_ns;
    uint32_t before = gpu.spans[i - 1].last;
    while (other != gpu.others.end() && other->end_ns <= start_ns) ++other;
    for (auto in_gap = other; in_gap != gpu.others.end() && in_gap->start_ns < end_ns; ++in_gap) {
      add(start_ns, in_gap->start_ns, before, IdleGap::kNoWork);
      start_ns = std::max(start_ns, in_gap->end_ns);
      before = IdleGap::kNoWork;
    }
    add(start_ns, end_ns, before, gpu.spans[i].first);
  }
  return gaps;
}

}  // namespace xpu
