#include "report/query/gpu_waits.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/model/sort_runs.h"
#include "report/trace/correlation.h"

namespace xpu {
namespace {

// What ran during waits, by process and stream.
class WaitFinder {
 public:
  WaitFinder(const Analysis& analysis, const GpuNames& names) : analysis_(analysis), names_(names) {
    const GpuWorkList& work = analysis.correlation.work;
    for (const uint32_t i : analysis.Work().places()) {
      if (!work[i].timed || work[i].kind == WorkKind::kSynchronization) continue;
      of_process_[work[i].instance].Add(work[i], i);
      of_stream_[{work[i].instance, work[i].stream_id}].Add(work[i], i);
    }
    for (auto& [instance, intervals] : of_process_) intervals.Sort();
    for (auto& [stream, intervals] : of_stream_) intervals.Sort();
  }

  NamedValues Find() {
    for (const GpuWork& work : analysis_.Work()) {
      if (IsTimedWait(analysis_, work)) AddWait(work);
    }
    return std::move(values_);
  }

 private:
  bool IsOfStream(const GpuWork& wait) const {
    const uint32_t type =
        analysis_.model.events.synchronizations.Get<&Synchronization::type>(wait.index);
    return SynchronizationName(type) == "stream";
  }

  void AddWait(const GpuWork& wait) {
    const std::string call =
        wait.launch == GpuWork::kNoLaunch
            ? names_.Title(wait)
            : ApiNameOf(analysis_.api_names, analysis_.correlation.launches[wait.launch]);
    const WorkIntervals& running =
        IsOfStream(wait) ? of_stream_[{wait.instance, wait.stream_id}] : of_process_[wait.instance];
    std::map<std::string, uint64_t> waited;  // one value for each name and wait
    uint64_t until_ns = wait.start_ns;
    uint64_t ran_ns = 0;
    for (const auto& interval : running.Around(wait.start_ns, wait.end_ns)) {
      const uint64_t begin_ns = std::max(interval.start_ns, until_ns);
      const uint64_t end_ns = std::min(interval.end_ns, wait.end_ns);
      if (end_ns <= begin_ns) continue;
      waited[names_.Title(analysis_.correlation.work[interval.index])] += end_ns - begin_ns;
      ran_ns += end_ns - begin_ns;
      until_ns = end_ns;
    }
    const uint64_t rest_ns = wait.end_ns - wait.start_ns - ran_ns;
    if (rest_ns > 0) waited["[nothing running]"] = rest_ns;
    for (const auto& [name, ns] : waited) values_[Format("{}: {}", call, name)].push_back(ns);
  }

  const Analysis& analysis_;
  const GpuNames& names_;
  std::map<InstanceId, WorkIntervals> of_process_;
  std::map<std::pair<InstanceId, uint32_t>, WorkIntervals> of_stream_;
  NamedValues values_;
};

}  // namespace

void WorkIntervals::Sort() {
  SortRuns(all_, [](const Interval& a, const Interval& b) {
    return std::tie(a.start_ns, a.index) < std::tie(b.start_ns, b.index);
  });
  end_so_far_.reserve(all_.size());
  uint64_t end_ns = 0;
  for (const Interval& interval : all_) {
    end_ns = std::max(end_ns, interval.end_ns);
    end_so_far_.push_back(end_ns);
  }
}

std::span<const WorkIntervals::Interval> WorkIntervals::Around(uint64_t start_ns,
                                                               uint64_t end_ns) const {
  const auto first = std::upper_bound(end_so_far_.begin(), end_so_far_.end(), start_ns);
  const auto last =
      std::lower_bound(all_.begin(), all_.end(), end_ns,
                       [](const Interval& a, uint64_t time_ns) { return a.start_ns < time_ns; });
  const auto begin = static_cast<size_t>(first - end_so_far_.begin());
  const auto end = static_cast<size_t>(last - all_.begin());
  return begin < end ? std::span(all_).subspan(begin, end - begin) : std::span<const Interval>();
}

bool IsTimedWait(const Analysis& analysis, const GpuWork& work) {
  return work.timed && work.end_ns > work.start_ns && IsCpuWait(analysis.model.events, work);
}

std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names) {
  NamedValues values = WaitFinder(analysis, names).Find();
  return SummarizeByTotal(values);
}

}  // namespace xpu
