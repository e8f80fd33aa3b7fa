#include "report/query/gpu_phases.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "report/model/median.h"

namespace xpu {
namespace {

// A gap between kernels of one step is shorter.
constexpr uint64_t kLongNs = 1'000'000;
// Times the median of what the same call ends.
constexpr uint64_t kFarLonger = 10;
// So often a call ends gaps of a loop.
constexpr size_t kOften = 3;
// A pause of the steady state is shorter than this part of what lies before and after it.
constexpr uint64_t kPausePart = 10;
// The steady state has at least this part of the work, and so many pieces.
constexpr size_t kSteadyPart = 10;
constexpr size_t kSteadyWork = 50;

// One call of the program: its stacks, or what it starts where there are none.
using CallSite = std::tuple<StackId, StackId, uint32_t>;

CallSite SiteOf(const IdleGap& gap, const LaunchList& launches) {
  if (gap.launch == GpuWork::kNoLaunch) return {};
  const Launch& launch = launches[gap.launch];
  return {launch.stack, launch.python_stack, launch.callback_id};
}

std::vector<const IdleGap*> FindBreaks(const std::vector<IdleGap>& gaps,
                                       const LaunchList& launches) {
  std::map<CallSite, std::vector<uint64_t>> lengths;
  std::vector<std::pair<const IdleGap*, CallSite>> long_gaps;
  for (const IdleGap& gap : gaps) {
    const CallSite site = SiteOf(gap, launches);
    lengths[site].push_back(gap.ns);
    if (gap.ns >= kLongNs) long_gaps.emplace_back(&gap, site);
  }
  std::map<CallSite, uint64_t> limits;
  std::vector<const IdleGap*> breaks;
  for (const auto& [gap, site] : long_gaps) {
    const auto [limit, is_new] = limits.try_emplace(site, 0);
    std::vector<uint64_t>& of_site = lengths[site];
    if (is_new && of_site.size() >= kOften) {
      limit->second = MedianOf(of_site) * kFarLonger;
    }
    if (gap->ns > limit->second) breaks.push_back(gap);
  }
  return breaks;
}

struct SteadyStretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  size_t work = 0;  // spans of the GPU
};

// From break to break.
std::vector<SteadyStretch> FindStretches(const GpuBusy& gpu,
                                         const std::vector<const IdleGap*>& breaks) {
  std::vector<SteadyStretch> stretches;
  auto next = breaks.begin();
  for (const BusySpan& span : gpu.spans) {
    bool is_new = stretches.empty();
    while (next != breaks.end() && (*next)->start_ns < span.start_ns) {
      ++next;
      is_new = true;
    }
    if (is_new) stretches.push_back({.start_ns = span.start_ns});
    stretches.back().end_ns = span.end_ns;
    ++stretches.back().work;
  }
  // A gap that a time range cuts off is within the state at its side, unless it is a break itself.
  const auto is_break_at = [&](uint64_t start_ns) {
    return std::any_of(breaks.begin(), breaks.end(),
                       [&](const IdleGap* gap) { return gap->start_ns == start_ns; });
  };
  if (!is_break_at(gpu.from_ns)) stretches.front().start_ns = gpu.from_ns;
  if (!is_break_at(stretches.back().end_ns)) stretches.back().end_ns = gpu.to_ns;
  return stretches;
}

// Joins those that only a pause parts. Returns whether there were any.
bool JoinStretches(const GpuBusy& gpu, std::vector<SteadyStretch>& stretches) {
  size_t kept = 0;
  for (const SteadyStretch& stretch : stretches) {
    if (kept > 0) {
      SteadyStretch& before = stretches[kept - 1];
      const uint64_t shorter_ns = std::min(CountedNs(gpu, before.start_ns, before.end_ns),
                                           CountedNs(gpu, stretch.start_ns, stretch.end_ns));
      if (CountedNs(gpu, before.end_ns, stretch.start_ns) < shorter_ns / kPausePart) {
        before.end_ns = stretch.end_ns;
        before.work += stretch.work;
        continue;
      }
    }
    stretches[kept++] = stretch;
  }
  const bool has_joined = kept < stretches.size();
  stretches.resize(kept);
  return has_joined;
}

}  // namespace

GpuPhases FindPhases(const GpuBusy& gpu, const std::vector<IdleGap>& gaps,
                     const LaunchList& launches) {
  GpuPhases phases{.first_ns = gpu.from_ns,
                   .steady_ns = gpu.from_ns,
                   .steady_end_ns = gpu.to_ns,
                   .last_ns = gpu.to_ns};
  if (gpu.spans.empty()) return phases;
  std::vector<SteadyStretch> stretches = FindStretches(gpu, FindBreaks(gaps, launches));
  while (JoinStretches(gpu, stretches)) {
  }
  const size_t least = std::max(kSteadyWork, gpu.spans.size() / kSteadyPart);
  std::erase_if(stretches, [&](const SteadyStretch& stretch) { return stretch.work < least; });
  const auto steady = std::max_element(
      stretches.begin(), stretches.end(), [&](const SteadyStretch& a, const SteadyStretch& b) {
        return CountedNs(gpu, a.start_ns, a.end_ns) < CountedNs(gpu, b.start_ns, b.end_ns);
      });
  if (steady == stretches.end()) return phases;
  phases.steady_ns = steady->start_ns;
  phases.steady_end_ns = steady->end_ns;
  return phases;
}

}  // namespace xpu
