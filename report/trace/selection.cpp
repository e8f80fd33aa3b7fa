#include "report/trace/selection.h"

namespace xpu {

void AddAround(const GpuWorkList& all, uint32_t place, Selection& shown) {
  const GpuWork& work = all[place];
  const bool is_after = work.start_ns >= shown.to_ns;
  if (!is_after && work.end_ns > shown.from_ns) return;
  WorkAround& around = shown.around[work.gpu];
  uint32_t& known = is_after ? around.after : around.before;
  const bool is_nearer =
      known == kNoWork || (is_after ? work.start_ns < all.Get<&GpuWork::start_ns>(known)
                                    : work.end_ns > all.Get<&GpuWork::end_ns>(known));
  if (is_nearer) known = place;
}

std::vector<Pause> TimesBetween(const std::vector<Interval>& list, uint64_t from_ns,
                                uint64_t to_ns) {
  std::vector<Pause> between;
  ForEachGap(list, from_ns, to_ns, [&](uint64_t start_ns, uint64_t end_ns, size_t) {
    between.push_back({start_ns, end_ns, {}});
  });
  return between;
}

}  // namespace xpu
