#include "report/trace/job.h"

#include <algorithm>
#include <set>

#include "format/base/text.h"
#include "report/model/load.h"

namespace xpu {
namespace {

// The place of a process's capture among several that are shown as one.
uint32_t CaptureOf(uint32_t pid) { return pid / kPidsPerCapture; }

}  // namespace

uint32_t HostId(uint32_t id) { return id % kPidsPerCapture; }

Job::Job(const Model& model, const ProcessHistory& processes)
    : model_(model), processes_(processes) {
  FindHosts();
  for (const RankInfo& info : model.events.rank_infos) {
    has_ranks_ = true;
    if (info.instance) {
      by_pid_[info.pid] = &info;
    } else {
      by_capture_[CaptureOf(info.pid)] = &info;
    }
  }
  std::set<InstanceId> seen;
  for (const GpuProcess& gpu : model.events.gpu_processes) {
    if (!seen.insert(gpu.instance).second) continue;
    const RankInfo* info = InfoOf(processes.At(gpu.pid, gpu.time_ns), gpu.pid);
    JobRank& rank = ranks_.emplace_back(
        JobRank{.instance = gpu.instance, .pid = gpu.pid, .host = HostOf(gpu.pid)});
    if (info == nullptr || info->rank < 0) continue;
    rank.is_known = true;
    rank.number = static_cast<uint32_t>(info->rank);
    rank.local_rank = info->local_rank;
    rank.world_size = info->world_size;
  }
  // Ranks that were counted come last.
  std::stable_sort(ranks_.begin(), ranks_.end(), [](const JobRank& a, const JobRank& b) {
    if (a.is_known != b.is_known) return a.is_known;
    return a.number < b.number;
  });
  uint32_t next = 0;
  for (JobRank& rank : ranks_) {
    if (rank.is_known) {
      next = std::max(next, rank.number + 1);
    } else {
      rank.number = next++;
    }
    places_[rank.instance] = static_cast<uint32_t>(&rank - ranks_.data());
    numbers_.try_emplace(rank.pid, rank.number);
  }
}

// Captures of one boot of one kernel are of one host, whatever their containers call it.
void Job::FindHosts() {
  std::map<std::string, uint32_t> known;
  const auto add = [&](const RecordingInfo& info) {
    const std::string name(model_.Text(info.host_name));
    const std::string_view boot = model_.Text(info.boot_id);
    const auto [host, is_new] = known.try_emplace(boot.empty() ? "name " + name : std::string(boot),
                                                  static_cast<uint32_t>(hosts_.size()));
    if (is_new) hosts_.push_back(name);
    host_of_capture_.push_back(host->second);
  };
  for (const MergedCapture& capture : model_.captures) add(capture.info);
  if (model_.captures.empty() && !model_.events.recording_info.empty()) {
    add(model_.events.recording_info.front());
  }
  if (host_of_capture_.empty()) {
    hosts_.emplace_back();
    host_of_capture_.push_back(0);
  }
}

uint32_t Job::HostOf(uint32_t pid) const {
  const uint32_t capture = CaptureOf(pid);
  return capture < host_of_capture_.size() ? host_of_capture_[capture] : host_of_capture_.front();
}

std::string Job::TitleOf(ProcessId process, uint32_t pid) const {
  const std::optional<uint32_t> rank = has_ranks_ ? NumberOf(process, pid) : std::nullopt;
  const std::string host = hosts_.size() > 1 ? Format(" on {}", HostNameOf(pid)) : "";
  if (!rank) return Format("process {}{}", HostId(pid), host);
  return Format("rank {}{} (pid {})", *rank, host, HostId(pid));
}

const RankInfo* Job::InfoOf(ProcessId process, uint32_t pid) const {
  constexpr int kMostAncestors = 64;
  if (const auto own = by_pid_.find(pid); own != by_pid_.end()) return own->second;
  for (int i = 0; process && i < kMostAncestors; ++i, process = processes_[process].parent) {
    const auto found = by_pid_.find(processes_[process].pid);
    if (found != by_pid_.end()) return found->second;
  }
  const auto recorder = by_capture_.find(CaptureOf(pid));
  return recorder == by_capture_.end() ? nullptr : recorder->second;
}

uint32_t Job::Of(InstanceId instance) const {
  const auto found = places_.find(instance);
  return found == places_.end() ? kNone : found->second;
}

std::optional<uint32_t> Job::NumberOf(ProcessId process, uint32_t pid) const {
  const RankInfo* info = InfoOf(process, pid);
  if (info != nullptr && info->rank >= 0) return static_cast<uint32_t>(info->rank);
  const auto counted = numbers_.find(pid);
  return counted == numbers_.end() ? std::nullopt : std::optional(counted->second);
}

}  // namespace xpu
