#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/base/intervals.h"
#include "report/base/sort_runs.h"
#include "report/query/statistics.h"

namespace xpu {
namespace {

// A wait costs as much as the work in it is long. A program may have so many waits at once on
// average; a hostile capture, any number.
constexpr uint64_t kWaitsAtOnce = 16;
constexpr uint64_t kFewParts = uint64_t{1} << 20;

// A piece of work, without the time in which an earlier one still ran.
struct Part {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t before_ns = 0;  // length of all earlier ones
  uint32_t index = 0;      // in Correlation::work
};

// Finds the work that ran during waits, by process and stream.
class WaitFinder {
 public:
  WaitFinder(const Analysis& analysis, const GpuNames& names) : analysis_(analysis), names_(names) {
    for (const GpuWork& work : analysis.Work()) {
      if (IsTimedWait(analysis, work)) PartsOf(work);  // no other lists are needed
    }
    const GpuWorkList& all = analysis.correlation.work;
    for (const uint32_t i : analysis.Work().places()) {
      const GpuWork& work = all[i];
      if (!work.timed || work.kind == WorkKind::kSynchronization) continue;
      const Part part{work.start_ns, work.end_ns, 0, i};
      const auto add = [&](auto& lists, const auto& key) {
        if (const auto list = lists.find(key); list != lists.end()) list->second.push_back(part);
      };
      add(of_process_, work.instance);
      add(of_stream_, std::pair(work.instance, work.stream_id));
      parts_left_ += kWaitsAtOnce;
    }
    for (auto& [instance, parts] : of_process_) KeepFirst(parts);
    for (auto& [stream, parts] : of_stream_) KeepFirst(parts);
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

  // The work that a wait may be for.
  std::vector<Part>& PartsOf(const GpuWork& wait) {
    return IsOfStream(wait) ? of_stream_[{wait.instance, wait.stream_id}]
                            : of_process_[wait.instance];
  }

  static void KeepFirst(std::vector<Part>& parts) {
    SortRuns(parts, [](const Part& a, const Part& b) {
      return std::tie(a.start_ns, a.index) < std::tie(b.start_ns, b.index);
    });
    size_t kept = 0;
    for (Part part : parts) {
      if (kept > 0) {
        const Part& last = parts[kept - 1];
        part.start_ns = std::max(part.start_ns, last.end_ns);
        part.before_ns = last.before_ns + (last.end_ns - last.start_ns);
      }
      if (part.end_ns > part.start_ns) parts[kept++] = part;
    }
    parts.resize(kept);
  }

  void AddWait(const GpuWork& wait) {
    const std::string call =
        wait.launch == GpuWork::kNoLaunch
            ? names_.Title(wait)
            : ApiNameOf(analysis_.api_names, analysis_.correlation.launches[wait.launch]);
    const std::vector<Part>& running = PartsOf(wait);
    std::map<std::string, uint64_t> waited;  // one value for each name and wait
    uint64_t ran_ns = 0;
    const auto first = FirstEndingAfter(running, wait.start_ns);
    const auto end =
        std::lower_bound(first, running.end(), wait.end_ns,
                         [](const Part& part, uint64_t ns) { return part.start_ns < ns; });
    const auto count = static_cast<uint64_t>(end - first);
    const auto ns_of = [&](const Part& part) { return OverlapNs(part, wait); };
    if (count > parts_left_) {
      const Part& last = *std::prev(end);
      ran_ns = ns_of(*first) + (count == 1 ? 0
                                           : ns_of(last) + last.before_ns - first->before_ns -
                                                 (first->end_ns - first->start_ns));
      waited["[any work]"] = ran_ns;
    } else {
      parts_left_ -= count;
      for (auto part = first; part != end; ++part) {
        waited[names_.Title(analysis_.correlation.work[part->index])] += ns_of(*part);
        ran_ns += ns_of(*part);
      }
    }
    const uint64_t rest_ns = wait.end_ns - wait.start_ns - ran_ns;
    if (rest_ns > 0) waited["[nothing running]"] = rest_ns;
    for (const auto& [name, ns] : waited) values_[Format("{}: {}", call, name)].push_back(ns);
  }

  const Analysis& analysis_;
  const GpuNames& names_;
  std::map<InstanceId, std::vector<Part>> of_process_;
  std::map<std::pair<InstanceId, uint32_t>, std::vector<Part>> of_stream_;
  uint64_t parts_left_ = kFewParts;
  NamedValues values_;
};

}  // namespace

bool IsTimedWait(const Analysis& analysis, const GpuWork& work) {
  return work.timed && work.end_ns > work.start_ns && IsCpuWait(analysis.model.events, work);
}

std::vector<Statistics> WaitTimes(const Analysis& analysis, const GpuNames& names) {
  NamedValues values = WaitFinder(analysis, names).Find();
  return SummarizeByTotal(values);
}

}  // namespace xpu
