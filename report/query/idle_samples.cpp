#include "report/query/idle_samples.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/model/saturated.h"

namespace xpu {
namespace {

// Functions in which threads of a pool wait for work without giving up their CPU.
constexpr std::array<std::string_view, 3> kSpinning = {"blas_thread_server", "sched_yield",
                                                       "__sched_yield"};
// Libraries whose own code does nothing but wait: work is in functions of the program.
constexpr std::array<std::string_view, 3> kPools = {"libgomp", "libiomp5", "libomp"};

bool IsSpinning(const NamedFrame& frame) {
  return std::find(kSpinning.begin(), kSpinning.end(), frame.name) != kSpinning.end() ||
         std::any_of(kPools.begin(), kPools.end(),
                     [&](std::string_view library) { return frame.module.starts_with(library); });
}

}  // namespace

IdleSamples::IdleSamples(Analysis& analysis, CallPaths& paths)
    : analysis_(analysis), paths_(paths), period_ns_(SampleUnitNs(analysis.model)) {
  const SampleList& shown = analysis.model.events.cpu_samples;
  const SampleList& left_out = analysis.model.samples_left_out;
  samples_.reserve(shown.size() + left_out.size());
  for (const CpuSample& sample : shown.rows()) samples_.push_back(&sample);
  for (const CpuSample& sample : left_out.rows()) samples_.push_back(&sample);
  std::inplace_merge(
      samples_.begin(), samples_.begin() + static_cast<ptrdiff_t>(shown.size()), samples_.end(),
      [](const CpuSample* a, const CpuSample* b) { return a->time_ns < b->time_ns; });
  for (uint32_t i = 0; i < samples_.size(); ++i) {
    const Owner owner = OwnerOf(analysis, *samples_[i]);
    threads_[{owner.process, owner.tid}].push_back(i);
  }
}

// A thread that moves to another CPU meets its clock at another time, up to two periods later.
IdleSamples::Stretch IdleSamples::AroundOf(const Places& thread, size_t at) const {
  const uint64_t time_ns = TimeOf(thread[at]);
  const uint64_t half_ns = period_ns_ / 2;
  Stretch around = {time_ns - std::min(time_ns, half_ns), AddSaturated(time_ns, half_ns)};
  if (at > 0) {
    const uint64_t apart_ns = time_ns - TimeOf(thread[at - 1]);
    if (apart_ns / 2 <= period_ns_) around.start_ns = time_ns - apart_ns / 2;
  }
  if (at + 1 < thread.size()) {
    const uint64_t apart_ns = TimeOf(thread[at + 1]) - time_ns;
    if (apart_ns / 2 <= period_ns_) around.end_ns = time_ns + (apart_ns - apart_ns / 2);
  }
  return around;
}

void IdleSamples::OfThread(const Owner& owner, Stretch stretch, std::vector<Share>& shares,
                           std::vector<Stretch>& rest) const {
  const auto found = threads_.find({owner.process, owner.tid});
  if (found == threads_.end()) return rest.push_back(stretch);
  const Places& thread = found->second;
  const auto later = std::lower_bound(
      thread.begin(), thread.end(), stretch.start_ns,
      [this](uint32_t sample, uint64_t time_ns) { return TimeOf(sample) < time_ns; });
  size_t at = static_cast<size_t>(later - thread.begin());
  if (at > 0) --at;
  uint64_t until_ns = stretch.start_ns;
  for (; at < thread.size(); ++at) {
    const Stretch around = AroundOf(thread, at);
    if (around.start_ns >= stretch.end_ns) break;
    const uint64_t start_ns = std::max(until_ns, around.start_ns);
    const uint64_t end_ns = std::min(stretch.end_ns, around.end_ns);
    if (end_ns <= start_ns) continue;
    if (start_ns > until_ns) rest.push_back({until_ns, start_ns});
    shares.push_back({samples_[thread[at]], end_ns - start_ns});
    until_ns = end_ns;
  }
  if (until_ns < stretch.end_ns) rest.push_back({until_ns, stretch.end_ns});
}

bool IdleSamples::DescendsFrom(ProcessId process, ProcessId root) const {
  // A damaged capture may name a process among its own ancestors.
  for (size_t depth = 0; process && depth <= analysis_.processes.size(); ++depth) {
    if (process == root) return true;
    process = analysis_.processes[process].parent;
  }
  return false;
}

const IdleSamples::Places& IdleSamples::BelowProcess(ProcessId process) {
  const auto [below, is_new] = below_.try_emplace(process);
  if (!is_new) return below->second;
  for (const auto& [thread, places] : threads_) {
    if (!DescendsFrom(thread.first, process)) continue;
    below->second.insert(below->second.end(), places.begin(), places.end());
  }
  std::sort(below->second.begin(), below->second.end());
  return below->second;
}

// By the innermost function of user space that is not the C library's.
bool IdleSamples::Spins(uint32_t sample) {
  const CallTree& tree = paths_.tree();
  PathId path = paths_.OfSample(*samples_[sample]);
  const auto [known, is_new] = spins_.try_emplace(path.value, false);
  if (!is_new) return known->second;
  for (; path; path = tree[path].parent) {
    const NamedFrame& frame = analysis_.frames[tree[path].frame];
    if (IsSpinning(frame)) return known->second = true;
    if (frame.origin != FrameOrigin::kKernel && !frame.module.starts_with("libc.so")) break;
  }
  return false;
}

uint64_t IdleSamples::OfOthers(const Owner& owner, Stretch stretch, std::vector<Share>& shares) {
  if (!owner.process) return stretch.end_ns - stretch.start_ns;
  const uint64_t half_ns = period_ns_ / 2;
  const Places& below = BelowProcess(owner.process);
  const auto first = std::lower_bound(below.begin(), below.end(), stretch.start_ns,
                                      [&](uint32_t sample, uint64_t time_ns) {
                                        return AddSaturated(TimeOf(sample), half_ns) <= time_ns;
                                      });
  // What ran at once shares the time in which anything did.
  const size_t begin = shares.size();
  uint64_t sum_ns = 0;
  uint64_t covered_ns = 0;
  uint64_t until_ns = stretch.start_ns;
  for (auto at = first; at != below.end(); ++at) {
    const uint64_t time_ns = TimeOf(*at);
    const uint64_t start_ns = std::max(stretch.start_ns, time_ns - std::min(time_ns, half_ns));
    const uint64_t end_ns = std::min(stretch.end_ns, AddSaturated(time_ns, half_ns));
    if (start_ns >= stretch.end_ns) break;
    if (end_ns <= start_ns || samples_[*at]->tid == owner.tid || Spins(*at)) continue;
    shares.push_back({samples_[*at], end_ns - start_ns});
    sum_ns += end_ns - start_ns;
    covered_ns += end_ns - std::min(end_ns, std::max(start_ns, until_ns));
    until_ns = std::max(until_ns, end_ns);
  }
  // Rounded so that the shares add up.
  uint64_t weight_ns = 0;
  uint64_t given_ns = 0;
  for (size_t i = begin; i < shares.size(); ++i) {
    weight_ns += shares[i].ns;
    const auto up_to =
        static_cast<uint64_t>(static_cast<unsigned __int128>(covered_ns) * weight_ns / sum_ns);
    shares[i].ns = up_to - given_ns;
    given_ns = up_to;
  }
  return stretch.end_ns - stretch.start_ns - covered_ns;
}

}  // namespace xpu
