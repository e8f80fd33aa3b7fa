// The ranks of a job: which process is which, on which host, in one capture or in many.
//
// A process has the rank that its launcher set for it, else that of the process it comes from, else
// that of the recorder that it was recorded by. Without any, processes that use a GPU are numbered
// in their order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/model/model.h"
#include "report/model/process_history.h"

namespace xpu {

// A process of the job that uses a GPU.
struct JobRank {
  uint32_t number = 0;
  bool is_known = false;  // else it was counted
  InstanceId instance;
  uint32_t pid = 0;   // as the recorder sees it
  uint32_t host = 0;  // in Job::hosts()
  int32_t local_rank = -1;
  int32_t world_size = -1;
};

// A process or thread id as its host has it: those of several captures that are shown as one are
// larger.
uint32_t HostId(uint32_t id);

class Job {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Both must outlive this.
  Job(const Model& model, const ProcessHistory& processes);

  // In order of their numbers.
  const std::vector<JobRank>& ranks() const { return ranks_; }
  // The names of the hosts, by the start of their recordings.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // Some process has a rank from a launcher.
  bool has_ranks() const { return has_ranks_; }

  // The place in ranks(); kNone: it is none of them.
  uint32_t Of(InstanceId instance) const;
  // The rank of any process, of data loaders too; nullopt: it has none.
  std::optional<uint32_t> NumberOf(ProcessId process, uint32_t pid) const;
  // "process 797"; of a rank "rank 1 (pid 799)", of several hosts "rank 1 on node3 (pid 799)".
  std::string TitleOf(ProcessId process, uint32_t pid) const;
  uint32_t HostOf(uint32_t pid) const;
  const std::string& HostNameOf(uint32_t pid) const { return hosts_[HostOf(pid)]; }

 private:
  void FindHosts();
  const RankInfo* InfoOf(ProcessId process, uint32_t pid) const;

  const Model& model_;
  const ProcessHistory& processes_;
  std::vector<std::string> hosts_;
  std::vector<uint32_t> host_of_capture_;
  std::unordered_map<uint32_t, const RankInfo*> by_pid_;
  std::map<uint32_t, const RankInfo*> by_capture_;
  std::vector<JobRank> ranks_;
  std::unordered_map<InstanceId, uint32_t> places_;
  std::unordered_map<uint32_t, uint32_t> numbers_;  // by pid
  bool has_ranks_ = false;
};

}  // namespace xpu
