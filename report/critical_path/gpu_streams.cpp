#include "report/critical_path/gpu_streams.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "report/base/flat_map.h"
#include "report/base/sort_runs.h"

namespace xpu {
namespace {

// A call that launches waits while about a thousand launches are pending. One that is so long, with
// so many, is taken for that.
constexpr uint64_t kBlockedNs = 20'000;
constexpr size_t kFullQueue = 512;

using StreamKey = std::tuple<uint64_t, uint32_t, uint32_t>;      // its process, itself, its device
using WorkByStart = std::vector<std::pair<uint64_t, uint32_t>>;  // when it starts, its place

StreamKey KeyOf(const GpuWork& work) {
  return {work.instance.value, work.stream_id, work.device_id};
}

void Sum(const Correlation& correlation, GpuStream& stream) {
  stream.launched_ns.reserve(stream.work.size());
  stream.ended_ns.reserve(stream.work.size());
  stream.last.reserve(stream.work.size());
  uint64_t launched_ns = 0;
  uint64_t ended_ns = 0;
  uint32_t last = stream.work.front();
  for (const uint32_t place : stream.work) {
    const GpuWork& work = correlation.work[place];
    launched_ns = std::max(launched_ns, std::min(work.start_ns, work.called_ns));
    if (work.end_ns >= ended_ns) last = place;
    ended_ns = std::max(ended_ns, work.end_ns);
    stream.launched_ns.push_back(launched_ns);
    stream.ended_ns.push_back(ended_ns);
    stream.last.push_back(last);
  }
}

size_t CountUntil(const std::vector<uint64_t>& times, uint64_t ns) {
  return static_cast<size_t>(std::upper_bound(times.begin(), times.end(), ns) - times.begin());
}

class WaitFinder {
 public:
  WaitFinder(const Analysis& analysis, const GpuStreams& streams)
      : analysis_(analysis), correlation_(analysis.correlation), streams_(streams) {}

  std::vector<GpuWait> Find() {
    waits_.resize(correlation_.launches.size());
    for (const GpuWork& work : correlation_.work) {
      if (work.launch == GpuWork::kNoLaunch) continue;
      if (IsCpuWait(analysis_.model.events, work)) AddSynchronization(work);
    }
    for (uint32_t place = 0; place < correlation_.work.size(); ++place) {
      const GpuWork& work = correlation_.work[place];
      if (work.launch == GpuWork::kNoLaunch || !streams_.Has(work)) continue;
      if (work.kind == WorkKind::kMemcpy) AddCopy(place);
    }
    for (const GpuStream& stream : streams_.all()) AddFullQueue(stream);
    return std::move(waits_);
  }

 private:
  // From CUpti_ActivitySynchronizationType.
  static constexpr uint32_t kEvent = 1;
  static constexpr uint32_t kStream = 3;

  // The work that an event waits for is not recorded: it is assumed to be the last work that ended
  // in time.
  void AddSynchronization(const GpuWork& work) {
    const Launch& call = correlation_.launches[work.launch];
    const uint32_t type =
        analysis_.model.events.synchronizations.Get<&Synchronization::type>(work.index);
    GpuWait& wait = waits_[work.launch];
    std::optional<uint32_t> last;
    if (type == kStream && work.stream_id != kNoSynchronizedObject) {
      const GpuStream* stream = streams_.Find(work.instance, work.stream_id);
      if (stream != nullptr) last = stream->LastOf(call.start_ns, call.end_ns);
    } else {
      last = LastOfAll(work.instance, call.start_ns, call.end_ns);
      wait.is_assumed = type == kEvent;
    }
    if (last) wait.work = *last;
  }

  std::optional<uint32_t> LastOfAll(InstanceId instance, uint64_t launched_ns, uint64_t ended_ns) {
    std::optional<uint32_t> last;
    for (const GpuStream& stream : streams_.Of(instance)) {
      const std::optional<uint32_t> of = stream.LastOf(launched_ns, ended_ns);
      if (!of) continue;
      if (!last || correlation_.work[*of].end_ns > correlation_.work[*last].end_ns) last = of;
    }
    return last;
  }

  // A copy that ends before its call does: the call waited for it.
  void AddCopy(uint32_t place) {
    const GpuWork& work = correlation_.work[place];
    const Launch& call = correlation_.launches[work.launch];
    if (!call.has_call || work.end_ns > call.end_ns) return;
    GpuWait& wait = waits_[work.launch];
    if (wait.work == GpuWait::kNothing || work.end_ns > correlation_.work[wait.work].end_ns) {
      wait.work = place;
    }
  }

  void AddFullQueue(const GpuStream& stream) {
    for (const uint32_t place : stream.work) {
      const GpuWork& work = correlation_.work[place];
      if (work.launch == GpuWork::kNoLaunch) continue;
      const Launch& call = correlation_.launches[work.launch];
      if (call.end_ns - call.start_ns < kBlockedNs || work.start_ns < call.end_ns) continue;
      if (stream.PendingAt(call.start_ns) < kFullQueue) continue;
      const std::optional<uint32_t> last = stream.LastOf(call.start_ns, call.end_ns);
      GpuWait& wait = waits_[work.launch];
      if (!last || wait.work != GpuWait::kNothing) continue;
      wait = {.work = *last, .is_assumed = true, .is_full_queue = true};
    }
  }

  const Analysis& analysis_;
  const Correlation& correlation_;
  const GpuStreams& streams_;
  std::vector<GpuWait> waits_;  // by launch
};

}  // namespace

std::optional<uint32_t> GpuStream::LastOf(uint64_t until_launched_ns,
                                          uint64_t until_ended_ns) const {
  const size_t count =
      std::min(CountUntil(launched_ns, until_launched_ns), CountUntil(ended_ns, until_ended_ns));
  if (count == 0) return std::nullopt;
  return last[count - 1];
}

size_t GpuStream::PendingAt(uint64_t time_ns) const {
  const size_t launched = CountUntil(launched_ns, time_ns);
  return launched - std::min(launched, CountUntil(ended_ns, time_ns));
}

bool GpuStreams::Has(const GpuWork& work) const {
  return work.kind != WorkKind::kSynchronization && work.timed && work.end_ns >= work.start_ns &&
         part_.Has(work.start_ns, work.end_ns);
}

GpuStreams::GpuStreams(const Analysis& analysis, const RecordingPart& part) : part_(part) {
  const GpuWorkList& all = analysis.correlation.work;
  std::map<StreamKey, WorkByStart> streams;
  Recent stream_of(streams);
  for (uint32_t place = 0; place < all.size(); ++place) {
    const GpuWork& work = all[place];
    if (Has(work)) stream_of[KeyOf(work)].emplace_back(work.start_ns, place);
  }
  for (auto& [key, works] : streams) {
    SortRuns(works, std::less<>());
    const auto [instance, id, device] = key;
    all_.push_back({InstanceId{instance}, device, id, {}, {}, {}, {}});
    for (const auto& [start_ns, place] : works) all_.back().work.push_back(place);
    WorkByStart().swap(works);
    Sum(analysis.correlation, all_.back());
  }
}

std::span<const GpuStream> GpuStreams::Of(InstanceId instance) const {
  const std::span<const GpuStream> all = AllOf(instance);
  return all.first(std::min(all.size(), kMost));
}

std::span<const GpuStream> GpuStreams::AllOf(InstanceId instance) const {
  const auto begin =
      std::lower_bound(all_.begin(), all_.end(), instance,
                       [](const GpuStream& of, InstanceId wanted) { return of.instance < wanted; });
  const auto end =
      std::upper_bound(begin, all_.end(), instance,
                       [](InstanceId wanted, const GpuStream& of) { return wanted < of.instance; });
  return {begin, end};
}

const GpuStream* GpuStreams::Find(InstanceId instance, uint32_t stream) const {
  const std::span<const GpuStream> all = AllOf(instance);
  const auto found =
      std::lower_bound(all.begin(), all.end(), stream,
                       [](const GpuStream& of, uint32_t wanted) { return of.id < wanted; });
  return found != all.end() && found->id == stream ? &*found : nullptr;
}

std::vector<GpuWait> FindGpuWaits(const Analysis& analysis, const GpuStreams& streams) {
  return WaitFinder(analysis, streams).Find();
}

}  // namespace xpu
