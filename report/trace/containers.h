// The containers of processes, and what reports call them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/model/process_history.h"

namespace xpu {

class Containers {
 public:
  // Both must outlive this.
  Containers(const Model& model, const ProcessHistory& processes);

  // No process is in one.
  bool empty() const { return names_.empty(); }
  // The container of the process then, or of the one that it descends from; nullptr: none.
  InTime<const ContainerInfo*> Find(ProcessId process, uint64_t time_ns) const;
  const ContainerInfo* Of(ProcessId process, uint64_t time_ns) const {
    return Find(process, time_ns).value;
  }
  // "default/trainer-0/main" (namespace, pod and name in it), "web", or the beginning of its id,
  // as `docker ps` prints it; no two containers have the same.
  const std::string& NameOf(const ContainerInfo& container) const;
  // Whether a user who writes `text` means it: its name, the beginning of its id, its pod, or its
  // name in its pod.
  bool IsCalled(const ContainerInfo& container, const std::string& text) const;

 private:
  const Model& model_;
  const ProcessHistory& processes_;
  std::map<ProcessId, std::vector<const ContainerInfo*>> of_processes_;  // by time
  std::map<std::string, std::string, std::less<>> names_;                // by id
};

}  // namespace xpu
