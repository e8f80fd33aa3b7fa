// The place of a process in a job of several processes, as its launcher says in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "format/events.h"
#include "record/sink/event_sink.h"

namespace xpu {

struct Rank {
  Launcher launcher = Launcher::kUnknown;
  int32_t rank = 0;
  int32_t local_rank = -1;  // -1, here and in the next ones: not known
  int32_t world_size = -1;
  int32_t node_rank = -1;
  std::string node_name;
  std::string job_id;
  std::string step_id;
};

// nullopt: no launcher has set a rank. Where several have, as torchrun in a step of Slurm, the
// innermost one that is known counts.
std::optional<Rank> FindRank(const std::vector<std::string>& environment);

// The variables that the process had at its last exec; empty if they cannot be read. What it has
// set since is not recorded.
std::vector<std::string> EnvironmentOf(pid_t pid);

// `instance`: none for the rank of the recorder itself. Does nothing without a rank.
void WriteRank(const std::optional<Rank>& rank, InstanceId instance, uint32_t pid, EventSink& sink);

}  // namespace xpu
