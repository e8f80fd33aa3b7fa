#include "report/query/running_time.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/query/off_cpu_names.h"
#include "report/query/off_cpu_times.h"

namespace xpu {

SynchronizationCalls::SynchronizationCalls(const Analysis& analysis) {
  if (analysis.OffCpuWaits().empty() && analysis.OffCpuSums().empty()) return;
  std::unordered_map<const std::string*, bool> waits;  // by the name of the call
  for (const Launch& launch : analysis.correlation.launches) {
    if (!launch.has_call) continue;
    const std::string& name = ApiNameOf(analysis.api_names, launch);
    const auto [known, is_new] = waits.try_emplace(&name);
    if (is_new) known->second = name.find("Synchronize") != std::string::npos;
    if (!known->second) continue;
    threads_[launch.owner().thread()].push_back({launch.start_ns, launch.end_ns});
  }
  for (auto& [thread, calls] : threads_) SortByStart(calls);
}

bool SynchronizationCalls::IsInOne(const Owner& owner, uint64_t time_ns) const {
  const auto thread = threads_.find(owner.thread());
  return thread != threads_.end() && FindAt(thread->second, time_ns) != nullptr;
}

std::string WaitReasons::Of(const Owned<OffCpuWait>& wait) const {
  std::string name = WaitName(wait);
  const bool is_for_gpu = IsWait(wait.state) && gpu_calls_.IsInOne(wait.owner(), wait.start_ns);
  return is_for_gpu ? Format("GPU ({})", name) : name;
}

std::vector<RunningTime> FindRunningTimes(const Analysis& analysis) {
  std::map<ThreadKey, RunningTime> threads;
  const auto of = [&](const Owner& owner) -> RunningTime& {
    RunningTime& thread = threads[owner.thread()];
    thread.owner = owner;
    return thread;
  };
  for (const Owned<OffCpuSum>& sum : analysis.OffCpuSums()) {
    if (sum.state != OffCpuState::kRunning) continue;
    RunningTime& thread = of(sum.owner());
    thread.total_ns = AddSaturated(thread.total_ns, sum.duration);
  }
  const SampleWeights weights(analysis.model, analysis.shown);
  for (const uint32_t place : analysis.CpuSamples().places()) {
    const Owned<CpuSample>& sample = analysis.model.events.cpu_samples[place];
    if (!weights.IsOfTime(sample)) continue;
    of(sample.owner()).parts.push_back({place, weights.Of(sample)});
  }
  std::vector<RunningTime> found;
  for (auto& [key, thread] : threads) {
    uint64_t weight = 0;
    for (const RunningTime::Part& part : thread.parts) weight = AddSaturated(weight, part.ns);
    if (thread.total_ns == 0) thread.total_ns = weight;
    // Rounded so that the parts add up.
    if (weight == 0) thread.parts.clear();
    const auto total_ns = static_cast<long double>(thread.total_ns);
    long double sum = 0;
    uint64_t given_ns = 0;
    for (RunningTime::Part& part : thread.parts) {
      sum += static_cast<long double>(part.ns);
      const long double share = std::min(1.0L, sum / static_cast<long double>(weight));
      const auto until_ns = static_cast<uint64_t>(std::min(total_ns, total_ns * share));
      part.ns = until_ns - std::min(given_ns, until_ns);
      given_ns = std::max(given_ns, until_ns);
    }
    if (thread.total_ns > 0) found.push_back(std::move(thread));
  }
  return found;
}

}  // namespace xpu
