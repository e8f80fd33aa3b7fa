// Writes processes that ran before the recording began, read from /proc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/process/process_maps.h"
#include "record/sink/event_sink.h"

namespace xpu {

// All visible processes of this pid namespace.
std::vector<pid_t> ListProcesses();

// Checks that it can be recorded: it is a process, the recorder may read it, and it has code of its
// own.
Status CheckProcess(pid_t pid);

class RunningProcesses {
 public:
  // Writes the process, the names of its threads and its code mappings, as of `time_ns`. A process
  // that has ended meanwhile is left out.
  void Write(pid_t pid, uint64_t time_ns, EventSink& sink);

 private:
  const std::string& BuildIdOf(uint32_t pid, const ProcessMapping& mapping);

  std::map<std::pair<uint64_t, uint64_t>, std::string> build_ids_;  // by device and inode
};

}  // namespace xpu
